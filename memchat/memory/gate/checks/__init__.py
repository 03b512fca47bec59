"""The checks of the gate, one file each, in the order that ``judge`` lists them."""
