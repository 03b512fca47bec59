"""Writing the records of an export into a store; where they come from is the caller's business."""
