"""The public interface as one text: safer.h with its parts in their places."""
import pathlib
import re

INCLUDE = pathlib.Path(__file__).resolve().parent.parent / "include"


def text(folder=INCLUDE):
    return re.sub(r'^#include "(safer/\w+\.h)".*$', lambda part: (folder / part[1]).read_text(), (folder / "safer.h").read_text(),
                  flags=re.M)
