"""LIBSVM's data files and model files."""

from jsvm.io.data import load_data, save_data
from jsvm.io.machines import load_model, save_model

__all__ = ["load_data", "load_model", "save_data", "save_model"]
