#!/bin/sh
# Build SUNDIALS with the compiler flags that the benchmark uses for the problems:  SUNDIALS_DIR=target sh build.sh archive-of-the-sources
# Debian's own library is compiled without optimisation and takes three to four times as long.
set -eu
target=${SUNDIALS_DIR:?where to install}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
archive=${1:?archive of the sources}
mkdir "$work/source"
tar xf "$archive" -C "$work/source" --strip-components=1
cmake -S "$work/source" -B "$work/build" -DCMAKE_INSTALL_PREFIX="$target" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_FLAGS_RELEASE="-O3 -march=native -DNDEBUG" -DBUILD_STATIC_LIBS=OFF -DEXAMPLES_ENABLE_C=OFF -DEXAMPLES_INSTALL=OFF \
    -DBUILD_CVODES=OFF -DBUILD_IDAS=OFF -DBUILD_KINSOL=OFF
cmake --build "$work/build" --parallel
cmake --install "$work/build"
