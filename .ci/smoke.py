"""Tries an installed holonome in a few ways that need its data files and all that it depends on."""

import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import holonome as hn

COMMANDS = [
    "doctor",
    "run four_bar --out four_bar.png --out four_bar.npz",
    "run pendulum --method ggl",
    "animate four_bar.npz --out four_bar.html",
    "reproduce yen-petzold algorithm-2.1 --out report",
]

package = Path(hn.__file__).parent
assert package.is_relative_to(sys.prefix), f"not the installed package, but {package}"
assert hn.__version__ == version("holonome")
assert (package / "py.typed").is_file()

command = Path(sys.executable).with_name("holonome")
with tempfile.TemporaryDirectory() as folder:
    for arguments in COMMANDS:
        print(f"holonome {arguments}", flush=True)
        subprocess.run([command, *arguments.split()], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    for name in ("four_bar.png", "four_bar.npz", "four_bar.html", "report/index.html"):
        assert (Path(folder) / name).stat().st_size > 1000, name
print(f"holonome {hn.__version__} works from {package}")
