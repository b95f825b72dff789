"""Pictures of tutorials, reduced in size for the repository."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from PIL import Image

PICTURE_BYTES = 100_000


def save_picture(source: Path, target: Path) -> None:
    """Copy a picture with fewer colours, and scale it down to at most PICTURE_BYTES."""
    picture = Image.open(source).convert("RGB")
    if picture.width > 900:
        picture = picture.resize((900, round(picture.height * 900 / picture.width)))
    for colours in (128, 64, 32, 16):
        picture.quantize(colours).save(target, optimize=True)
        if target.stat().st_size <= PICTURE_BYTES:
            return
    raise ValueError(f"{target}: more than {PICTURE_BYTES} bytes")


def reduce_colours(content: bytes) -> bytes:
    """A PNG on white with a palette of 256 colours, about a third of its size."""
    picture = Image.open(BytesIO(content)).convert("RGBA")
    white = Image.new("RGBA", picture.size, "white")
    small = BytesIO()
    Image.alpha_composite(white, picture).convert("RGB").quantize(dither=Image.Dither.NONE).save(
        small, "PNG", optimize=True
    )
    return small.getvalue()
