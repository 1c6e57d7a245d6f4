#!/usr/bin/env bash
# No file names a place on one machine, or a host that serves packages to one network. The brackets keep this file out of its own search.
set -euo pipefail
cd "$(dirname "$0")/.."

patterns=('/wor[k]/' '/roo[t]/' '/hom[e]/[a-z]' '[.][.]/share[d]' 'artifactor[y]' 'index[.]crates[.]i[o]' '/tmp/brie[f]')
found=0
for pattern in "${patterns[@]}"; do
    # Tracked files and those about to be.
    if git grep -nIE --untracked -e "$pattern" -- . ':!fuzz/corpus'; then
        found=1
    fi
done
if [ $found -ne 0 ]; then
    echo "text: the lines above name places that only one machine has"
    exit 1
fi
