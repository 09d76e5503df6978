#!/bin/sh
# Compile the Fortran codes that lie in a folder, or below it, into one library.
#
#     build.sh FOLDER LIBRARY
#
# Wanted are radau5.f, radau.f, rodas.f, decsol.f, dc_decsol.f, phem56.f and linsp.f (Hairer and Wanner, Murua),
# ddaspk.f and daux.f (Petzold), mebdfi.f (Cash), and odassl.f with its companions (Führer).
set -eu
folder=$(realpath "$1") library=$(realpath -m "$2") here=$(realpath "$(dirname "$0")")
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
find "$folder" -iname '*.pp' -exec cp {} "$objects" \;
flags="-cpp -std=legacy -w -ffixed-line-length-none -O3 -march=native -fno-aggressive-loop-optimizations -fPIC -I$objects"
for name in radau5 radau rodas decsol dc_decsol phem56 linsp ddaspk daux mebdfi errmsg \
    odassl odacor odajac odastp ddanrm ddatrp ddwats d1mach dgefa dgesl xerrwv daxpy ddot dscal idamax; do
    source=$(find "$folder" -iname "$name.f" | head -n 1)
    [ -n "$source" ] || { echo "there is no $name.f in $folder" >&2; exit 1; }
    # shellcheck disable=SC2086
    gfortran $flags -c "$source" -o "$objects/$name.o"
done
gcc -O3 -fPIC -c "$here/messages.c" -o "$objects/messages.o"
mkdir -p "$(dirname "$library")"
gfortran -shared -Wl,--allow-multiple-definition,-Bsymbolic "$objects"/messages.o $(ls "$objects"/*.o | grep -v messages) -o "$library" -llapack -lblas
