"""The types of the operations that say something of others (`flowbook.graph.ops.state.marks`)."""

UPDATE_MARK = "MarkUpdate"  # of a change of state that belongs to a loss
TRAINING_MARK = "MarkTraining"  # of an optimizer's step
