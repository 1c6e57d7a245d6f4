//! Frames by encoders other than libzstd's one-shot one. `zstd-frames/golden/make` and `zstd-frames/golden/make.py` made them.

/// Names and bytes.
pub(crate) const FRAMES: &[(&str, &[u8])] = &[
    ("python-empty-last-block", include_bytes!("../zstd-frames/golden/python-empty-last-block.zst")),
    ("python-flushed-100", include_bytes!("../zstd-frames/golden/python-flushed-100.zst")),
    ("python-flushed-5000", include_bytes!("../zstd-frames/golden/python-flushed-5000.zst")),
    ("python-multi-frame", include_bytes!("../zstd-frames/golden/python-multi-frame.zst")),
    ("python-threads", include_bytes!("../zstd-frames/golden/python-threads.zst")),
    ("python-window-10", include_bytes!("../zstd-frames/golden/python-window-10.zst")),
    ("ruzstd-fastest-int16-3000", include_bytes!("../zstd-frames/golden/ruzstd-fastest-int16-3000.zst")),
    ("ruzstd-fastest-repeated-block-150000", include_bytes!("../zstd-frames/golden/ruzstd-fastest-repeated-block-150000.zst")),
    (
        "ruzstd-fastest-smooth-float32-shuffled-12000",
        include_bytes!("../zstd-frames/golden/ruzstd-fastest-smooth-float32-shuffled-12000.zst"),
    ),
    ("ruzstd-fastest-text-6000", include_bytes!("../zstd-frames/golden/ruzstd-fastest-text-6000.zst")),
    ("ruzstd-fastest-zeros-300000", include_bytes!("../zstd-frames/golden/ruzstd-fastest-zeros-300000.zst")),
    ("ruzstd-uncompressed-int16-3000", include_bytes!("../zstd-frames/golden/ruzstd-uncompressed-int16-3000.zst")),
    ("structured-zstd-best-int16-3000", include_bytes!("../zstd-frames/golden/structured-zstd-best-int16-3000.zst")),
    ("structured-zstd-best-repeated-block-150000", include_bytes!("../zstd-frames/golden/structured-zstd-best-repeated-block-150000.zst")),
    ("structured-zstd-best-runs-140000", include_bytes!("../zstd-frames/golden/structured-zstd-best-runs-140000.zst")),
    (
        "structured-zstd-best-smooth-float32-shuffled-12000",
        include_bytes!("../zstd-frames/golden/structured-zstd-best-smooth-float32-shuffled-12000.zst"),
    ),
    ("structured-zstd-best-text-6000", include_bytes!("../zstd-frames/golden/structured-zstd-best-text-6000.zst")),
    ("structured-zstd-best-zeros-300000", include_bytes!("../zstd-frames/golden/structured-zstd-best-zeros-300000.zst")),
    ("structured-zstd-default-int16-3000", include_bytes!("../zstd-frames/golden/structured-zstd-default-int16-3000.zst")),
    (
        "structured-zstd-default-repeated-block-150000",
        include_bytes!("../zstd-frames/golden/structured-zstd-default-repeated-block-150000.zst"),
    ),
    ("structured-zstd-default-runs-140000", include_bytes!("../zstd-frames/golden/structured-zstd-default-runs-140000.zst")),
    (
        "structured-zstd-default-smooth-float32-shuffled-12000",
        include_bytes!("../zstd-frames/golden/structured-zstd-default-smooth-float32-shuffled-12000.zst"),
    ),
    ("structured-zstd-default-text-6000", include_bytes!("../zstd-frames/golden/structured-zstd-default-text-6000.zst")),
    ("structured-zstd-default-zeros-300000", include_bytes!("../zstd-frames/golden/structured-zstd-default-zeros-300000.zst")),
    ("structured-zstd-fastest-int16-3000", include_bytes!("../zstd-frames/golden/structured-zstd-fastest-int16-3000.zst")),
    (
        "structured-zstd-fastest-repeated-block-150000",
        include_bytes!("../zstd-frames/golden/structured-zstd-fastest-repeated-block-150000.zst"),
    ),
    ("structured-zstd-fastest-runs-140000", include_bytes!("../zstd-frames/golden/structured-zstd-fastest-runs-140000.zst")),
    (
        "structured-zstd-fastest-smooth-float32-shuffled-12000",
        include_bytes!("../zstd-frames/golden/structured-zstd-fastest-smooth-float32-shuffled-12000.zst"),
    ),
    ("structured-zstd-fastest-text-6000", include_bytes!("../zstd-frames/golden/structured-zstd-fastest-text-6000.zst")),
    ("structured-zstd-fastest-zeros-300000", include_bytes!("../zstd-frames/golden/structured-zstd-fastest-zeros-300000.zst")),
];
