"""Signals: frames, transforms, spectra."""
