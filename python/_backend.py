"""Builds the wheel: a PEP 517 backend that needs nothing but Python's standard library.

The wheel holds the package, a copy of libsafer and, where they lie beside it, the program and its manual page: those of
the folder of the file that SAFER_LIBRARY names, else of build/ of the checkout this folder is part of, else built now with
CMake. The source archive holds the C sources too, below source/, so a wheel can be built from it alone. In a copy of this
folder without them the wheel relies on the library installed in the system, when there is one.

A wheel made so needs the libraries that libsafer is linked with. `make wheel` makes one that needs nothing: it calls
build_wheel with a library linked statically, the computed tag and the licences (config_settings: platform, licenses).
"""
import base64
import ctypes
import gzip
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
ROOT = HERE / "source" if (HERE / "source").is_dir() else HERE.parent
# What the library and the program are built from; the source archive has it below source/.
SOURCES = ("CMakeLists.txt", "LICENSE", "NOTICE", "SECURITY.md", "include", "src", "cli", "web", "tools/check-certificates", "docs/safer.1.in",
           "docs/check-certificates.1", "scripts/embed.cmake", "scripts/sbom.cmake", "scripts/safer.pc.in", "scripts/safer.service.in")
VERSION = re.search(r'__version__ = "([^"]+)"', (HERE / "safer_nlp/_version.py").read_text(encoding="utf-8"))[1]
SONAME = "libsafer.so." + re.match(r"0\.\d+|\d+", VERSION)[0]  # as CMakeLists.txt has it
INFO, DATA = f"safer_nlp-{VERSION}.dist-info", f"safer_nlp-{VERSION}.data"
WHEN = (1980, 1, 1, 0, 0, 0)  # the same files give the same wheel

METADATA = f"""Metadata-Version: 2.1
Name: safer_nlp
Version: {VERSION}
Summary: Certified robustness of text classifiers to word substitution
Keywords: nlp,text classification,robustness,certification,randomized smoothing,adversarial
Author: The safer maintainers
License: Apache-2.0
Classifier: Development Status :: 4 - Beta
Classifier: Environment :: Console
Classifier: Intended Audience :: Developers
Classifier: Intended Audience :: Science/Research
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Python :: 3
Classifier: Programming Language :: Python :: 3 :: Only
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Classifier: Topic :: Security
Classifier: Topic :: Text Processing :: Linguistic
Classifier: Typing :: Typed
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
    """Builds the library, the program and its page from the sources beside this folder; returns the library's path."""
    for tool in ("cmake", "cc"):
        if not shutil.which(os.environ.get("CC", tool) if tool == "cc" else tool):
            raise SystemExit(f"safer: {SONAME} is not built and {tool} is missing; "
                             "run make first, or name the library in SAFER_LIBRARY")
    for command in (["cmake", "-S", str(ROOT), "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DSAFER_TESTS=OFF", "-DSAFER_CUDA=OFF", "-DSAFER_MPI=OFF"],
                    ["cmake", "--build", folder, "--parallel", str(os.cpu_count() or 1), "--target", "safer_shared", "safer", "pages"]):
        print("safer:", " ".join(command), flush=True)
        if subprocess.run(command).returncode:
            raise SystemExit(f"safer: the library could not be built; scripts/bootstrap installs what it needs ({' '.join(command)} failed)")
    return pathlib.Path(folder, SONAME)


def files_of(library):
    """What a wheel takes from the folder of a library: {name in the wheel: bytes}. The program has the library's version."""
    program, page, checker = library.parent / "safer", library.parent / "safer.1", ROOT / "tools/check-certificates"
    files = {f"safer_nlp/{SONAME}": library.read_bytes()}
    if program.is_file() and os.access(program, os.X_OK):
        done = subprocess.run([program, "--version"], stdout=subprocess.PIPE)
        if done.stdout.decode(errors="replace").split("\n")[0] != f"safer {VERSION}":
            raise SystemExit(f"safer: {program} does not have version {VERSION}; build it again")
        files[f"{DATA}/scripts/safer"] = program.read_bytes()
        if page.is_file():
            files[f"{DATA}/data/share/man/man1/safer.1"] = page.read_bytes()
    if checker.is_file():
        files[f"{DATA}/scripts/check-certificates"] = checker.read_bytes()
        files[f"{DATA}/data/share/man/man1/check-certificates.1"] = (ROOT / "docs/check-certificates.1").read_bytes()
    return files


def library_files():
    """What is built, for the wheel; nothing where the system's library is used."""
    named, built = os.environ.get("SAFER_LIBRARY"), ROOT / "build" / SONAME
    checkout = (ROOT / "CMakeLists.txt").is_file() and (ROOT / "include/safer.h").is_file()
    if named or checkout and built.is_file():
        path = pathlib.Path(named or built)
    elif checkout:
        with tempfile.TemporaryDirectory(prefix="safer-build-") as folder:
            return files_of(build_library(folder))
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
    return {} if path == SONAME else files_of(path)


# --------------------------------------------------------------------- the wheel

def modules():
    return sorted([*(HERE / "safer_nlp").glob("*.py"), HERE / "safer_nlp/py.typed"])


def metadata():
    """What an index shows. It cannot follow paths of the repository: of such a link the words are left."""
    return METADATA + re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", (HERE / "README.md").read_text(encoding="utf-8"))


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
            entry.external_attr = (0o100755 if path.endswith(SONAME) or "/scripts/" in path else 0o100644) << 16
            wheel.writestr(entry, content)
        for path, content in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(content)}\n"
            add(path, content)
        add(f"{INFO}/RECORD", (record + f"{INFO}/RECORD,,\n").encode())
    return name


def licences(folder):
    """The licence of the package and, from a folder, those of libraries that are linked statically."""
    files = {f"{INFO}/licenses/{name}": (ROOT / name).read_bytes() for name in ("LICENSE", "NOTICE") if (ROOT / name).is_file()}
    for path in sorted(pathlib.Path(folder).iterdir()) if folder else ():
        files[f"{INFO}/licenses/{path.name}"] = path.read_bytes()
    return files


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    settings = config_settings or {}
    files = {f"safer_nlp/{path.name}": path.read_bytes() for path in modules()}
    made = library_files()
    platform = settings.get("platform") or re.sub(r"[^A-Za-z0-9]", "_", sysconfig.get_platform())
    return write_wheel(wheel_directory, f"py3-none-{platform if made else 'any'}", {**files, **made, **licences(settings.get("licenses"))})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """`pip install -e`: a line that leads here. The library is then that of the build folder."""
    return write_wheel(wheel_directory, "py3-none-any", {"__editable__.safer_nlp.pth": f"{HERE}\n".encode()})


def sources():
    """The C sources, where they are: {name in the source archive: path}."""
    found = {}
    for part in SOURCES if (ROOT / "CMakeLists.txt").is_file() else ():
        inside = sorted((ROOT / part).rglob("*")) if (ROOT / part).is_dir() else [ROOT / part]
        found.update({f"source/{path.relative_to(ROOT)}": path for path in inside if path.is_file()})
    return found


def build_sdist(sdist_directory, config_settings=None):
    """This folder and the C sources; the same files give the same archive."""
    top = f"safer_nlp-{VERSION}"
    files = {name: HERE / name for name in ("pyproject.toml", "_backend.py", "README.md")}
    files.update({f"safer_nlp/{path.name}": path for path in modules()})
    with open(pathlib.Path(sdist_directory, top + ".tar.gz"), "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        def add(name, content, mode=0o644):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
        for name, path in {**files, **sources()}.items():
            add(name, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
        add("PKG-INFO", metadata().encode())
    return top + ".tar.gz"


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel
