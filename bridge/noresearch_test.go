//go:build noresearch

package bridge

// modesOfBuild are none.
var modesOfBuild []string

const familyNames = "[context hgt labor neighbor program rows temporal typed walk]"
