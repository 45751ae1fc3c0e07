"""Finds libsafer, loads it and declares its functions.

In this order: the file that the environment variable SAFER_LIBRARY names, the copy inside
this package, the build folder of the source checkout that this file is part of, and what the
system knows under the name. The first that exists must fit: a wrong one is an ImportError
and is not skipped, because results would then come from a library that was not meant.
"""
from __future__ import annotations

import ctypes
import os
import pathlib
import shutil
import subprocess
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_size_t, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type, TypeVar, Union

from . import _structs as c
from ._errors import InvalidError, check
from ._version import __version__

SONAME = "libsafer.so." + ".".join(__version__.split(".")[:2 if __version__.startswith("0.") else 1])
_HERE = pathlib.Path(__file__).resolve().parent

_ERROR = POINTER(c.Error)
_OUT = POINTER(c_void_p)
S = TypeVar("S", bound=ctypes.Structure)

# Result and parameters of every function that is used. c_void_p stands for an object.
_FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "safer_version": (c_char_p, []),
    **{f"safer_{kind}_parse": (c_int, [POINTER(c_int), c_char_p, _ERROR])
       for kind in ("format", "metric", "precision", "profile", "method", "stage", "edit_kind", "arch", "pool", "defense",
                    "truncation_side", "charcnn_size", "attack_method", "export")},
    "safer_data_options_init": (None, [POINTER(c.DataOptions), c_size_t]),
    "safer_data_load": (c_int, [_OUT, c_char_p, POINTER(c.DataOptions), _ERROR]),
    "safer_data_from_texts": (c_int, [_OUT, POINTER(c_char_p), POINTER(c_size_t), POINTER(c_char_p), POINTER(c_char_p), c_size_t, _ERROR]),
    "safer_data_free": (None, [c_void_p]),
    "safer_data_size": (c_size_t, [c_void_p]),
    "safer_data_row": (c.Row, [c_void_p, c_size_t]),
    "safer_data_name": (c_char_p, [c_void_p]),
    "safer_data_label_count": (c_size_t, [c_void_p]),
    "safer_data_label": (c_char_p, [c_void_p, c_size_t]),
    "safer_lexicon_options_init": (None, [POINTER(c.LexiconOptions), c_size_t]),
    "safer_lexicon_build": (c_int, [_OUT, POINTER(c.LexiconOptions), POINTER(c.LexiconReport), _ERROR]),
    "safer_lexicon_import": (c_int, [_OUT, POINTER(c.LexiconOptions), POINTER(c.LexiconReport), _ERROR]),
    "safer_lexicon_with_kernel": (c_int, [_OUT, c_void_p, c_char_p, c_int, _ERROR]),
    "safer_choose_options_init": (None, [POINTER(c.ChooseOptions), c_size_t]),
    "safer_lexicon_choose": (c_int, [_OUT, POINTER(c.Choice), c_void_p, c_void_p, POINTER(c.ChooseOptions), _ERROR]),
    "safer_lexicon_open": (c_int, [_OUT, c_char_p, _ERROR]),
    "safer_lexicon_save": (c_int, [c_void_p, c_char_p, _ERROR]),
    "safer_lexicon_free": (None, [c_void_p]),
    "safer_lexicon_describe": (c.LexiconInfo, [c_void_p]),
    "safer_lexicon_name": (c_char_p, [c_void_p]),
    "safer_lexicon_sha256": (c_char_p, [c_void_p]),
    "safer_lexicon_find": (c_uint32, [c_void_p, c_char_p, c_size_t]),
    "safer_lexicon_word": (c.Word, [c_void_p, c_uint32]),
    "safer_lexicon_fold": (c_void_p, [c_void_p]),
    "safer_fold_steps": (c_char_p, [c_void_p]),
    "safer_fold_apply": (c_int, [c_void_p, c_char_p, c_size_t, c.WRITE, c_void_p, _ERROR]),
    "safer_lexicon_overlap": (c_double, [c_void_p, c_uint32, c_uint32]),
    "safer_survey_caution": (c_int, [POINTER(c.Survey), c_void_p, c_char_p, c_size_t]),
    "safer_lexicon_survey": (c_int, [POINTER(c.Survey), c_void_p, c_void_p, c_int, POINTER(c.Progress), _ERROR]),
    "safer_lexicon_export": (c_int, [c_void_p, c_int, c_int, c.WRITE, c_void_p, _ERROR]),
    "safer_audit_options_init": (None, [POINTER(c.AuditOptions), c_size_t]),
    "safer_lexicon_audit": (c_int, [POINTER(POINTER(c.Doubtful)), POINTER(c_size_t), c_void_p, POINTER(c.AuditOptions), _ERROR]),
    "safer_model_open": (c_int, [_OUT, c_char_p, _ERROR]),
    "safer_model_free": (None, [c_void_p]),
    "safer_model_set_precision": (c_int, [c_void_p, c_int, _ERROR]),
    "safer_model_set_device": (c_int, [c_void_p, c_char_p, _ERROR]),
    "safer_device_get": (c_int, [POINTER(c.Device), c_size_t]),
    "safer_model_arch": (c_char_p, [c_void_p]),
    "safer_model_name": (c_char_p, [c_void_p]),
    "safer_model_sha256": (c_char_p, [c_void_p]),
    "safer_model_class_count": (c_size_t, [c_void_p]),
    "safer_model_label": (c_char_p, [c_void_p, c_size_t]),
    "safer_model_trained_with": (c_char_p, [c_void_p]),
    "safer_model_classify": (c_int, [c_void_p, POINTER(c_char_p), POINTER(c_size_t), c_size_t, POINTER(c_int), POINTER(c_float), _ERROR]),
    "safer_remote_options_init": (None, [POINTER(c.RemoteOptions), c_size_t]),
    "safer_model_connect": (c_int, [_OUT, c_char_p, POINTER(c.RemoteOptions), _ERROR]),
    "safer_model_from_callback": (c_int, [_OUT, c.CLASSIFY, c_void_p, POINTER(c.RemoteOptions), _ERROR]),
    "safer_model_traffic": (c.Traffic, [c_void_p]),
    "safer_model_is_random": (c_int, [c_void_p]),
    "safer_model_convert": (c_int, [c_char_p, c_char_p, _ERROR]),
    "safer_model_average": (c_int, [c_char_p, POINTER(c_char_p), c_size_t, _ERROR]),
    "safer_train_options_init": (None, [POINTER(c.TrainOptions), c_size_t]),
    "safer_train": (c_int, [c_char_p, POINTER(c.TrainOptions), POINTER(c.TrainReport), _ERROR]),
    "safer_train_choose": (c_int, [c_char_p, POINTER(c.TrainOptions), POINTER(c.Choice), POINTER(c.TrainReport), _ERROR]),
    "safer_sum_options_init": (None, [POINTER(c.SumOptions), c_size_t]),
    "safer_sum_fit": (c_int, [POINTER(c.SumResult), c_char_p, c_char_p, c_void_p, c_void_p, c_void_p, POINTER(c.SumOptions), _ERROR]),
    "safer_label_options_init": (None, [POINTER(c.LabelOptions), c_size_t]),
    "safer_label": (c_int, [POINTER(c.LabelSummary), POINTER(c_int), c_void_p, c_void_p, POINTER(c.LabelOptions), _ERROR]),
    "safer_reported_radius": (c_size_t, [c_size_t]),
    "safer_certify_options_init": (None, [POINTER(c.CertifyOptions), c_size_t]),
    "safer_certify_text": (c_int, [POINTER(c.Certificate), _OUT, c_void_p, c_void_p, c_char_p, c_size_t, c_int,
                                   POINTER(c.CertifyOptions), _ERROR]),
    "safer_workspace_free": (None, [c_void_p]),
    "safer_certify": (c_int, [POINTER(c.Summary), c_char_p, c_int, c_void_p, c_void_p, c_void_p, POINTER(c.CertifyOptions), _ERROR]),
    "safer_shard_parse": (c_int, [POINTER(c_size_t), POINTER(c_size_t), c_char_p, _ERROR]),
    "safer_merge": (c_int, [POINTER(c_size_t), c_char_p, POINTER(c_char_p), c_size_t, POINTER(c.Progress), _ERROR]),
    "safer_summary_free": (None, [POINTER(c.Summary)]),
    "safer_summary_headline": (c.Figure, [POINTER(c.Summary)]),
    "safer_summary_recall": (c.Figure, [POINTER(c.Summary), c_size_t]),
    "safer_summary_precision": (c.Figure, [POINTER(c.Summary), c_size_t]),
    "safer_summary_caution": (c_int, [POINTER(c.Summary), c_char_p, c_size_t]),
    "safer_deletion_parse": (c_int, [POINTER(c.Deletion), c_char_p, _ERROR]),
    "safer_draw_deleting": (c_int, [c_void_p, c_char_p, c_size_t, c.Deletion, c_int, c_uint64, c_uint64, c_uint64, c.DRAW, c_void_p, _ERROR]),
    "safer_interval": (None, [c_size_t, c_size_t, POINTER(c_double), POINTER(c_double)]),
    "safer_attack_options_init": (None, [POINTER(c.AttackOptions), c_size_t]),
    "safer_attack": (c_int, [POINTER(c.AttackSummary), c_char_p, c_int, c_void_p, c_void_p, c_void_p, POINTER(c.AttackOptions), _ERROR]),
    "safer_attack_against": (c_int, [POINTER(c.AgainstSummary), c_char_p, c_char_p, c_int, c_void_p, c_void_p, c_void_p,
                                     POINTER(c.AttackOptions), _ERROR]),
    "safer_run_read": (c_int, [_OUT, c_char_p, _ERROR]),
    "safer_run_free": (None, [c_void_p]),
    "safer_run_certified": (POINTER(c.Summary), [c_void_p]),
    "safer_run_attacked": (POINTER(c.AttackSummary), [c_void_p]),
    "safer_compare": (c_int, [POINTER(c.Comparison), POINTER(c_void_p), c_size_t, _ERROR]),
    "safer_report_options_init": (None, [POINTER(c.ReportOptions), c_size_t]),
    "safer_report": (c_int, [POINTER(c.Summary), c_char_p, POINTER(c_char_p), c_size_t, POINTER(c.ReportOptions), _ERROR]),
    "safer_serve_options_init": (None, [POINTER(c.ServeOptions), c_size_t]),
    "safer_server_start": (c_int, [_OUT, c_void_p, c_void_p, POINTER(c.CertifyOptions), POINTER(c.ServeOptions), _ERROR]),
    "safer_server_url": (c_char_p, [c_void_p]),
    "safer_server_port": (c_uint16, [c_void_p]),
    "safer_server_reload": (c_int, [c_void_p, c_void_p, c_void_p, _ERROR]),
    "safer_server_stop": (None, [c_void_p]),
    "safer_gate_kind_name": (c_char_p, [c_int]),
    "safer_evidence_options_init": (None, [POINTER(c.EvidenceOptions), c_size_t]),
    "safer_evidence": (c_int, [POINTER(c.Gate), c_char_p, c_char_p, POINTER(c.EvidenceOptions), _ERROR]),
    "safer_verify": (c_int, [POINTER(c.Verification), c_char_p, c_void_p, c_void_p, c_void_p, c_int, POINTER(c.Progress), _ERROR]),
}


def _system_library() -> Optional[str]:
    """The installed library: by its name or, from another prefix, by pkg-config."""
    try:
        ctypes.CDLL(SONAME)
        return SONAME
    except OSError:
        pass
    if not shutil.which("pkg-config"):
        return None
    done = subprocess.run(["pkg-config", "--variable=libdir", "safer"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    path = pathlib.Path(done.stdout.decode(errors="replace").strip()) / SONAME
    return str(path) if done.returncode == 0 and path.is_file() else None


def find_library() -> str:
    """The path (or bare name) of the library to load."""
    named = os.environ.get("SAFER_LIBRARY")
    if named:
        return named
    bundled = _HERE / SONAME
    if bundled.is_file():
        return str(bundled)
    checkout = _HERE.parent.parent
    built = checkout / "build" / SONAME
    if (checkout / "include" / "safer.h").is_file() and built.is_file():
        return str(built)
    found = _system_library()
    if found:
        return found
    raise ImportError(f"{SONAME} was not found: build it (make), or install the package with the library in it (pip install ./python), "
                      "or name the file in the environment variable SAFER_LIBRARY")


def _load() -> ctypes.CDLL:
    path = find_library()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded: {error}") from error
    try:
        library.safer_version.restype = c_char_p
        version = library.safer_version().decode()
        if version != __version__:
            raise ImportError(f"{path} has version {version}; this package needs {__version__}")
        for name, (result, parameters) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype = result
            function.argtypes = parameters
    except AttributeError as error:
        raise ImportError(f"{path} is not the library this package needs: {error}") from error
    return library


library = _load()


# ------------------------------------------------------------------ small things

def path_bytes(path: "str | os.PathLike[str]") -> bytes:
    return os.fsencode(path)


def optional_bytes(text: "str | os.PathLike[str] | None") -> Optional[bytes]:
    return None if text is None else os.fsencode(text)


def string_array(strings: Sequence[Optional[bytes]]) -> "ctypes.Array[c_char_p]":
    """char *[]; it keeps the strings alive."""
    return (c_char_p * len(strings))(*strings)


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns a status and takes a safer_error last; raises what it reports."""
    error = c.Error()
    check(getattr(library, name)(*arguments, byref(error)), error)


def choice(kind: str, name: str) -> int:
    """The value of an enum of safer.h by its name; raises what the library says of a name that it does not know."""
    value = c_int()
    call(f"safer_{kind}_parse", byref(value), str(name).encode(errors="replace"))
    return value.value


def deletion_of(delete: Union[float, str], groups: Optional[int] = None) -> c.Deletion:
    """A chance, whose range the library checks where it is used, or "keep:25"; or a number of groups."""
    if groups is not None and groups < 1:
        raise InvalidError(f"groups: {groups}; 1 or more, or None")
    if not isinstance(delete, str):
        return c.Deletion(delete, 0, groups or 0)
    found = c.Deletion()
    call("safer_deletion_parse", byref(found), delete.encode(errors="replace"))
    found.groups = groups or 0
    return found


def deletion_name(deletion: c.Deletion) -> Union[float, str]:
    """The other way round."""
    return f"keep:{deletion.keep}" if deletion.keep else float(deletion.chance)


def default_options(kind: str, structure: Type[S]) -> S:
    """A struct of options with its defaults."""
    made = structure()
    getattr(library, f"safer_{kind}_options_init")(byref(made), ctypes.sizeof(made))
    return made


def make(name: str, *arguments: Any) -> int:
    """Calls a function that makes an object, which is its first parameter; returns its address."""
    out = c_void_p()
    call(name, byref(out), *arguments)
    assert out.value
    return out.value
