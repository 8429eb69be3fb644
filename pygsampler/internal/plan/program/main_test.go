package program

import (
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs/coststest"
)

func TestMain(m *testing.M) { coststest.Main(m) }
