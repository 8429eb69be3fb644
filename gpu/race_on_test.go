//go:build race

package gpu

const raceDetector = true
