"""Lines that a node writes about itself: which file gets them, in which form, at which level."""
