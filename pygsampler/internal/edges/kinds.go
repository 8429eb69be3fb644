package edges

import (
	"slices"
	"strings"
	"unicode"
)

var (
	// Words that name an end of an edge, or the relation of its node to the other end: columns with
	// these words imply nothing about types.
	endWords = strings.Fields(`
		src source dst dest destination target from to head tail start end begin origin first second
		citing cited cites citation linked linking related similar original duplicate other ego alter
		parent child ancestor descendant predecessor successor prev previous next left right in out
		subject object friend neighbor neighbour peer partner counterparty follower followee followed
		following referrer referred reply node vertex entity ref key`)
	// Two roles of one kind of things.
	rolePairs = [][2]string{
		{"buyer", "seller"}, {"employee", "manager"}, {"sender", "receiver"}, {"sender", "recipient"},
		{"donor", "recipient"}, {"winner", "loser"}, {"husband", "wife"}, {"home", "away"},
	}
)

// twoKinds returns the types of two columns of ids, such as user and item for user_id and itemId,
// if their names imply two types. Roles of one type, such as follower_id and followee_id, do not,
// and neither do names that share a word.
func twoKinds(first, second string) (a, b string, two bool) {
	u, v := plainName(first), plainName(second)
	if u == "user" && v == "item" || u == "item" && v == "user" {
		return u, v, true
	}
	one, other := nounOf(first), nounOf(second)
	if len(one) == 0 || len(other) == 0 {
		return "", "", false
	}
	for _, word := range append(slices.Clone(one), other...) {
		if len(word) == 1 || slices.Contains(endWords, word) || slices.Contains(one, word) && slices.Contains(other, word) {
			return "", "", false
		}
	}
	a, b = strings.Join(one, "_"), strings.Join(other, "_")
	if strings.Contains(a, b) || strings.Contains(b, a) ||
		slices.Contains(rolePairs, [2]string{a, b}) || slices.Contains(rolePairs, [2]string{b, a}) ||
		giverAndTaker(a, b) || giverAndTaker(b, a) {
		return "", "", false
	}
	return a, b, true
}

// giverAndTaker reports whether the words are a pair such as payer and payee.
func giverAndTaker(a, b string) bool {
	giver, taker := strings.HasSuffix(a, "er") || strings.HasSuffix(a, "or"), strings.HasSuffix(b, "ee") || strings.HasSuffix(b, "ed")
	return giver && taker
}

// nounOf returns the words of a column's name before "id", without numbers; none if it does not end
// so: user and group for "userGroupID", "user_group_id" and "User Group Id".
func nounOf(name string) []string {
	var spaced strings.Builder
	before := ' '
	for _, c := range name {
		switch {
		case unicode.IsUpper(c) && unicode.IsLower(before):
			spaced.WriteRune(' ')
			spaced.WriteRune(unicode.ToLower(c))
		case unicode.IsLetter(c):
			spaced.WriteRune(unicode.ToLower(c))
		default:
			spaced.WriteRune(' ')
		}
		before = c
	}
	words := strings.Fields(spaced.String())
	if len(words) == 0 {
		return nil
	}
	last := len(words) - 1
	if words[last] == "id" {
		return words[:last]
	}
	if rest := strings.TrimSuffix(words[last], "id"); rest != words[last] && len(rest) > 2 {
		words[last] = rest
		return words
	}
	return nil
}

// ofType returns the only column that is named after a type of nodes, such as user_id for User; -1
// if there is none, or more than one.
func ofType(names []string, kind string) int {
	if kind == "" {
		return -1
	}
	found := -1
	for i, name := range names {
		if plainName(name) != plainName(kind) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}
