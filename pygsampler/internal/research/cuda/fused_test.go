package cuda

import "testing"

func TestFused(t *testing.T) { testMode(t, "fused", 1, 5) }
