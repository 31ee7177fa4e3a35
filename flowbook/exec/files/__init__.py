"""Files as runs read them: how they are opened, and what records they are made of."""
