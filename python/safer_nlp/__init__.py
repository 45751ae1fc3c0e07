"""safer: certified robustness of text classifiers to word substitution.

>>> import safer_nlp as safer
>>> lexicon = safer.Lexicon.load("demo.lex")
>>> results = safer.certify(pipeline, texts, labels, lexicon)
>>> print(results)
texts                       40
clean                   ...%  the base model itself
smoothed                ...%  the smoothed classifier
certified and answered  ...%  at radius all (95%: ...% to ...%)
...
>>> safer.Smoothed(pipeline, lexicon).predict(["A wonderful film."])[0].label
'1'

`pipeline` is anything that answers for a list of texts: a function, a scikit-learn or
HuggingFace pipeline, or a safer_nlp.Model. What is proven is in docs/certify.md.

Threads: Lexicon, Model and Smoothed may be shared by any number of threads. `certify` calls a
function from the thread that called it; calls of several threads run side by side. The
library runs without the GIL.
"""
from ._attack import Against, Attack, Attacks, AttackSummary, Change, attack, attack_against
from ._certify import Smoothed, certify, draws, merge, verify
from ._data import Data, load_data
from ._errors import CallbackError, CancelledError, Error, InputError, InvalidError, OperatingSystemError, OutOfMemoryError
from ._evidence import Gate, evidence
from ._label import Labelling, label
from ._lexicon import Doubtful, Lexicon, LexiconDiff, LexiconInfo, Survey, Word
from ._model import Device, Model, Predict, Traffic, devices
from ._report import Comparison, compare, report
from ._results import Certificate, ClassSummary, Prediction, Results, Summary, Verification
from ._serve import Server, serve
from ._train import SumFit, Training, average, convert, fit_sum, train
from ._version import __version__

__all__ = ["Against", "Attack", "AttackSummary", "Attacks", "CallbackError", "CancelledError", "Certificate", "Change", "ClassSummary",
           "Comparison", "Data", "Device", "Doubtful", "Error", "Gate", "InputError", "InvalidError", "Labelling", "Lexicon", "LexiconDiff", "LexiconInfo",
           "Model", "OperatingSystemError", "OutOfMemoryError", "Predict", "Prediction", "Results", "Server", "Smoothed", "SumFit", "Summary", "Survey",
           "Traffic", "Training", "Verification", "Word", "__version__", "attack", "attack_against", "average", "certify", "compare",
           "convert", "devices", "draws", "evidence", "fit_sum", "label", "load_data", "merge", "report", "serve", "train", "verify"]
