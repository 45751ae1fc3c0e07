"""Builds the wheel: a PEP 517 backend that needs nothing but Python's standard library.

The wheel holds the package and a copy of libsafer: the file that SAFER_LIBRARY names, else
build/ of the checkout this folder is part of, else one built now with CMake. In a copy of
this folder alone, without a library, the wheel relies on the one installed in the system,
when there is one.
"""
import base64
import ctypes
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
import tarfile
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
VERSION = re.search(r'__version__ = "([^"]+)"', (HERE / "safer_nlp/_version.py").read_text(encoding="utf-8"))[1]
SONAME = "libsafer.so." + ".".join(VERSION.split(".")[:2])
INFO = f"safer_nlp-{VERSION}.dist-info"
WHEN = (1980, 1, 1, 0, 0, 0)  # the same files give the same wheel

METADATA = f"""Metadata-Version: 2.1
Name: safer_nlp
Version: {VERSION}
Summary: Certified robustness of text classifiers to word substitution
License: Apache-2.0
Requires-Python: >=3.9
Provides-Extra: pandas
Requires-Dist: pandas; extra == "pandas"
Provides-Extra: numpy
Requires-Dist: numpy; extra == "numpy"
Description-Content-Type: text/markdown

"""


# ------------------------------------------------------------------- the library

def version_of(path):
    """The version of a library; why it has none is an error of its own."""
    try:
        library = ctypes.CDLL(str(path))
        library.safer_version.restype = ctypes.c_char_p
        return library.safer_version().decode()
    except (OSError, AttributeError) as error:
        raise SystemExit(f"safer: {path} cannot be used: {error}")


def build_library(folder):
    """Builds the library of the checkout; returns its path."""
    for tool in ("cmake", "cc"):
        if not shutil.which(os.environ.get("CC", tool) if tool == "cc" else tool):
            raise SystemExit(f"safer: {SONAME} is not built and {tool} is missing; "
                             "run make first, or name the library in SAFER_LIBRARY")
    for command in (["cmake", "-S", str(ROOT), "-B", folder, "-DCMAKE_BUILD_TYPE=Release"],
                    ["cmake", "--build", folder, "--target", "safer_shared", "--parallel", str(os.cpu_count() or 1)]):
        print("safer:", " ".join(command), flush=True)
        if subprocess.run(command).returncode:
            raise SystemExit(f"safer: the library could not be built; scripts/bootstrap installs what it needs ({' '.join(command)} failed)")
    return pathlib.Path(folder, SONAME)


def library_bytes():
    """The library to put into the wheel, or None: then the system's is used."""
    named, built = os.environ.get("SAFER_LIBRARY"), ROOT / "build" / SONAME
    checkout = (ROOT / "CMakeLists.txt").is_file() and (ROOT / "include/safer.h").is_file()
    if named or checkout and built.is_file():
        path = pathlib.Path(named or built)
    elif checkout:
        with tempfile.TemporaryDirectory(prefix="safer-build-") as folder:
            return build_library(folder).read_bytes()
    else:
        try:
            ctypes.CDLL(SONAME)
        except OSError:
            raise SystemExit(f"safer: this copy has no C sources beside it and the system has no {SONAME}: "
                             "name the library in SAFER_LIBRARY, or install from a whole checkout")
        path = SONAME
    version = version_of(path)
    if version != VERSION:
        raise SystemExit(f"safer: {path} has version {version}, this package {VERSION}; build it again")
    return None if path == SONAME else path.read_bytes()


# --------------------------------------------------------------------- the wheel

def modules():
    return sorted([*(HERE / "safer_nlp").glob("*.py"), HERE / "safer_nlp/py.typed"])


def metadata():
    return METADATA + (HERE / "README.md").read_text(encoding="utf-8")


def write_wheel(folder, tag, files):
    """A wheel of {name: bytes}; returns its name."""
    name = f"safer_nlp-{VERSION}-{tag}.whl"
    pure = "true" if tag.endswith("-any") else "false"
    files = {**files, f"{INFO}/METADATA": metadata().encode(),
             f"{INFO}/WHEEL": f"Wheel-Version: 1.0\nGenerator: safer\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode()}
    record = ""
    with zipfile.ZipFile(pathlib.Path(folder, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(path, content):
            entry = zipfile.ZipInfo(path, WHEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if path.endswith(SONAME) else 0o100644) << 16
            wheel.writestr(entry, content)
        for path, content in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(content)}\n"
            add(path, content)
        add(f"{INFO}/RECORD", (record + f"{INFO}/RECORD,,\n").encode())
    return name


def platform_tag():
    return "py3-none-" + re.sub(r"[^A-Za-z0-9]", "_", sysconfig.get_platform())


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {f"safer_nlp/{path.name}": path.read_bytes() for path in modules()}
    library = library_bytes()
    if library is not None:
        files[f"safer_nlp/{SONAME}"] = library
    return write_wheel(wheel_directory, platform_tag() if library is not None else "py3-none-any", files)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """`pip install -e`: a line that leads here. The library is then that of the build folder."""
    return write_wheel(wheel_directory, "py3-none-any", {"__editable__.safer_nlp.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    """This folder alone. What is built from it needs SAFER_LIBRARY or an installed library."""
    top = f"safer_nlp-{VERSION}"
    with tarfile.open(pathlib.Path(sdist_directory, top + ".tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in [HERE / "pyproject.toml", HERE / "_backend.py", HERE / "README.md", *modules()]:
            archive.add(path, f"{top}/{path.relative_to(HERE)}")
        content = metadata().encode()
        entry = tarfile.TarInfo(f"{top}/PKG-INFO")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return top + ".tar.gz"


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel
