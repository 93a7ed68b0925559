#!/bin/sh
# Makes the tars of testdata/golden/sections with GNU tar (1.34 made those that are there).
set -e
out=$(cd "$(dirname "$0")/../../sections" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 - << 'END'
import os, random
chance = random.Random(7)
text = lambda count: bytes(chance.choice(b"0123456789abcdef \n") for _ in range(count))
for name, count in [("a-empty", 0), ("b-one", 1), ("c-511", 511), ("d-512", 512), ("e-513", 513), ("f-text", 6000), ("o" * 90, 700)]:
    open(name, "wb").write(text(count))
os.mkdir("inner")
for number in range(3):
    open(f"inner/{number}", "wb").write(text(400 + 900 * number))
os.makedirs("long/" + "n" * 120)
open("long/" + "n" * 120 + "/" + "m" * 60, "wb").write(text(1500))
with open("holes", "wb") as holes:
    for number in range(6):
        holes.seek(number * 64 << 10)
        holes.write(text(600))
    holes.truncate(1 << 20)
os.link("f-text", "g-link")
os.symlink("f-text", "h-symlink")
END
common="--sort=name --owner=0 --group=0 --numeric-owner --mtime=@1000000000 --blocking-factor=1"
short="a-empty b-one c-511 d-512 e-513 f-text g-link h-symlink inner z-nested.tar"
tar $common --format=gnu -cf z-nested.tar inner
tar $common --format=v7 -cf "$out/v7.tar" $short
tar $common --format=ustar -cf "$out/ustar.tar" $short
tar $common --format=gnu -cf "$out/gnu.tar" $short long
tar $common --format=pax --pax-option=delete=atime,delete=ctime,exthdr.name=x -cf "$out/pax.tar" $short long
tar $common --format=gnu --sparse -cf "$out/gnu-sparse.tar" b-one holes f-text
tar $common --format=pax --sparse --pax-option=delete=atime,delete=ctime,exthdr.name=x -cf "$out/pax-sparse.tar" b-one holes f-text
