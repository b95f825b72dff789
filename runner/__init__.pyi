from pathlib import Path

from runner.errors import ConfigError as ConfigError
from runner.errors import RunFailure as RunFailure
from runner.errors import RunnerError as RunnerError
from runner.errors import RunnerWarning as RunnerWarning
from runner.python.comparing import Comparison as Comparison
from runner.python.comparing import compare as compare
from runner.python.export.load_model import FittedModel as FittedModel
from runner.python.export.load_model import load_model as load_model
from runner.python.frames import runs as runs
from runner.python.loading import load as load
from runner.python.result import Result as Result
from runner.python.running import run as run
from runner.python.score import Score as Score

CONF: Path
