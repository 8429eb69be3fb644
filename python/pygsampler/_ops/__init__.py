"""Layer operations on the edges of a block, with gradients: sums, means, softmax, attention."""

from pygsampler._ops import operators as operators
