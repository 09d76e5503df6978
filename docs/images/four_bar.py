"""Makes four_bar.gif, the picture of the README, from the code of the README.

python docs/images/four_bar.py
"""

import re
from contextlib import chdir
from pathlib import Path

from PIL import Image, ImageSequence

HERE = Path(__file__).parent


def main() -> None:
    text = (HERE.parents[1] / "README.md").read_text(encoding="utf-8")
    code = re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert code is not None
    with chdir(HERE):
        exec(code[1], {})
        shrink(Path("four_bar.gif"))


def shrink(file: Path, colours: int = 32) -> None:
    """One palette for all frames."""
    with Image.open(file) as film:
        duration = film.info["duration"]
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(film)]
    palette = frames[len(frames) // 2].quantize(colours)
    first, *others = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    first.save(file, save_all=True, append_images=others, duration=duration, loop=0, optimize=True)


if __name__ == "__main__":
    main()
