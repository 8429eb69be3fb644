package csctest

import "math"

// Weightings are weights by CSC position, by name: those that are drawn without a
// repeat nearly always, and those that hardly ever are.
var Weightings = map[string]func(p int) float64{
	"equal":  func(int) float64 { return 1 },
	"ramp":   func(p int) float64 { return float64(p%7 + 1) },
	"pareto": func(p int) float64 { return math.Pow((float64(p*37%101)+0.5)/101, -1/1.2) },
	"heavy":  func(p int) float64 { return []float64{1, 1e-6, 1e6, 3, 1e-300, 1e300}[p%6] },
	"tiny":   func(p int) float64 { return float64(p%3+1) * 5e-324 },
}
