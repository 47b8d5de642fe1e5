"""LIBSVM's data files and model files."""

from jsvm.io.conversion import load_model, save_model
from jsvm.io.data import load_data, save_data

__all__ = ["load_data", "load_model", "save_data", "save_model"]
