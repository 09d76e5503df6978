"""holonome beside the codes that the field trusts, on eight problems at three errors.

    python benchmarks/peers.py setup --fortran FOLDER [--sundials ARCHIVE]
    python benchmarks/trusted.py [--out benchmarks/results/trusted.csv] [--quick]

Codes in Fortran (RADAU5, RADAU, RODAS, PHEM56, DASPK, ODASSL, MEBDFI; `adapters/fortran.py` states their
settings) and SUNDIALS with -O3, all with the same expressions and exact matrices, take turns with our
methods.  Times are processor time of the solve alone for them, of a whole call of `hn.solve` for us.
"""

from __future__ import annotations

from rich.console import Console

from harness import measure
from harness.options import Options

PROBLEMS = (
    "pendulum",
    "slider_crank",
    "andrews",
    "four_bar",
    "wheelset",
    "bushing",
    "bushing_pendulum",
    "controlled",
)
PEERS = ("holonome", "fortran", "sundials -O3")
LIMITS = measure.Limits(level=0.02, run=0.4, answer=4.0, repeats=5, drift=False)


def main() -> None:
    parser = Options(__doc__, "trusted.csv")
    parser.add_argument("--problem", nargs="+", choices=PROBLEMS, help="only these problems")
    options = parser.given()
    limits = measure.QUICK if options.quick else LIMITS
    names = options.problem or (("pendulum",) if options.quick else PROBLEMS)
    with Console(stderr=True).status("start …") as status:
        measure.write(measure.measure(names, PEERS, limits, status.update), options.out)


if __name__ == "__main__":
    main()
