"""Draw the picture of the demo that the README shows: `python tools/picture_demo.py` writes docs/images/demo.svg."""

import asyncio
import io
import re
import sys
from pathlib import Path

from rich.console import Console

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "demo.svg"
WIDTH, HEIGHT = 112, 44
sys.path.insert(0, str(ROOT / "examples"))

from show.environment import set_up  # noqa: E402
from show.live import View, look  # noqa: E402
from show.scenario import Scenario  # noqa: E402


async def fullest_moment() -> str:
    """Run the scenario and draw the screen that shows the most rows."""
    console = Console(width=WIDTH, height=HEIGHT, record=True, file=io.StringIO())
    view, most, picture = View(console), 0, ""
    async with set_up() as environment:
        async for step in Scenario(environment).steps():
            view.begin(step.title)
            view.done(await step.play())
            await look(environment.cluster.client, view)
            seen = sum(len(rows.get("rows") or ()) for _, rows in view.tables)
            if seen >= most:
                console.print(view.render())
                most, picture = seen, console.export_svg(title="scripts/demo", clear=True)
    return picture


def main() -> None:
    """Write the picture."""
    picture = asyncio.run(fullest_moment())
    PICTURE.parent.mkdir(exist_ok=True)
    # A picture in a README must not load fonts from elsewhere: the reader's monospaced font is used.
    PICTURE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL))
    print(f"wrote {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
