"""Programs for TensorFlow 1 made ones for Flowbook: `python -m flowbook.port program.py`.

What to write for a name is what the errors say that Flowbook raises for it (`_renamed.py`,
`definition/keywords.py`): there is one table. A change is made only where it is sure; everything
else is listed by its line. Comments and layout stay as they are.
"""
