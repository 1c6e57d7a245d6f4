// All kernels, and which thread of theirs runs.
#include "codecs.cu"

extern "C" {
thread_local const SimtThread* simt_thread = nullptr;
void simt_set_thread(const SimtThread* thread) { simt_thread = thread; }
}
