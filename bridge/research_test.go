//go:build !noresearch

package bridge

// modesOfBuild make the batches of the other modes in other ways.
var modesOfBuild = []string{"fused", "bsp", "queue"}

const familyNames = "[bsp context fused hgt khop labor neighbor program queue reservoir rows temporal typed walk]"
