"""``python -m holonome`` is the command ``holonome``."""

from holonome.cli import main

if __name__ == "__main__":
    main()
