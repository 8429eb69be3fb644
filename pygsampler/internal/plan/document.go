package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Document is a plan as Python writes it: one JSON object. Each field is read once, by its name,
// and checked; the first violation is the error of the document, which says expected, got and
// where. The fields are written to a text in the order of reading, with defaults for missing
// fields, so that equal plans have equal texts.
//
// A value that JSON cannot represent is an object {"got": "generator <...>"}, which is rejected
// with that text.
type Document struct {
	fields map[string]json.RawMessage
	text   strings.Builder
	err    error
}

// Read parses a text.
func Read(text string) *Document {
	d := new(Document)
	if err := json.Unmarshal([]byte(text), &d.fields); err != nil {
		d.Refuse(request.ErrValue, "plan: expected a JSON object, got %v", err)
	}
	return d
}

// Err returns the first error. A field that was never read is an error, too.
func (d *Document) Err() error {
	if d.err != nil || len(d.fields) == 0 {
		return d.err
	}
	first := slices.Sorted(maps.Keys(d.fields))[0]
	return fmt.Errorf("%w: %s: expected no such option here, got %s", request.ErrType, first, describe(d.fields[first]))
}

// String returns the document as it was read.
func (d *Document) String() string { return "{" + d.text.String() + "}" }

// Refuse records an error, of a kind of package request, unless there is an earlier one.
func (d *Document) Refuse(kind error, format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...))
	}
}

// take is a field's value, which is then gone.
func (d *Document) take(name string) (value json.RawMessage, given bool) {
	value, given = d.fields[name]
	delete(d.fields, name)
	return value, given
}

// Note writes a field that was computed instead of read.
func (d *Document) Note(name string, value any) { d.note(name, value) }

// note writes a field down.
func (d *Document) note(name string, value any) {
	if d.text.Len() > 0 {
		d.text.WriteString(", ")
	}
	text, err := json.Marshal(value)
	if err != nil {
		d.Refuse(request.ErrValue, "%s: %v", name, err)
	}
	fmt.Fprintf(&d.text, "%q: %s", name, text)
}

// Bool reads a boolean.
func (d *Document) Bool(name string, usual bool) (value bool) {
	value = usual
	if raw, given := d.take(name); given && (string(raw) == "null" || json.Unmarshal(raw, &value) != nil) {
		d.Refuse(request.ErrType, "%s: expected True or False, got %s", name, describe(raw))
	}
	d.note(name, value)
	return value
}

// BoolOr reads a boolean, or a text that stands for a third value.
func (d *Document) BoolOr(name, text string) (value, is bool) {
	raw, given := d.take(name)
	if given && string(raw) == strconv.Quote(text) {
		d.note(name, text)
		return false, true
	}
	if given && (string(raw) == "null" || json.Unmarshal(raw, &value) != nil) {
		d.Refuse(request.ErrType, "%s: expected True, False or '%s', got %s", name, text, describe(raw))
	}
	d.note(name, value)
	return value, false
}

// Flag reads a boolean that is absent from the document when it is false.
func (d *Document) Flag(name string) (value bool) {
	if raw, given := d.take(name); given && (string(raw) == "null" || json.Unmarshal(raw, &value) != nil) {
		d.Refuse(request.ErrType, "%s: expected True or False, got %s", name, describe(raw))
	}
	if value {
		d.note(name, value)
	}
	return value
}

// OneOf reads one of several texts; the first is the default.
func (d *Document) OneOf(name string, known ...string) (value string) {
	value = known[0]
	if raw, given := d.take(name); given {
		if json.Unmarshal(raw, &value) != nil || string(raw) == "null" || !slices.Contains(known, value) {
			d.Refuse(request.ErrValue, "%s: expected one of ('%s'), got %s", name, strings.Join(known, "', '"), describe(raw))
		}
	}
	d.note(name, value)
	return value
}

// Name reads the name of an object of a kind; it is empty if there is none.
func (d *Document) Name(name, of string) string {
	var value *string
	if raw, given := d.take(name); given && json.Unmarshal(raw, &value) != nil {
		d.Refuse(request.ErrType, "%s: expected the name of %s, got %s", name, of, describe(raw))
	}
	d.note(name, value)
	if value == nil {
		return ""
	}
	if *value == "" {
		d.Refuse(request.ErrValue, "%s: expected the name of %s, got ''", name, of)
	}
	return *value
}

// Choice reads one of several texts; it is empty if the field is missing or null.
func (d *Document) Choice(name string, known ...string) (value string) {
	raw, given := d.take(name)
	if !given || string(raw) == "null" {
		d.note(name, nil)
		return ""
	}
	if json.Unmarshal(raw, &value) != nil || !slices.Contains(known, value) {
		d.Refuse(request.ErrValue, "%s: expected None or '%s', got %s", name, strings.Join(known, "' or '"), describe(raw))
	}
	d.note(name, value)
	return value
}

// Integer reads an integer from low to high; usual is the default for a missing field or null.
func (d *Document) Integer(name string, low, high, usual int64) int64 {
	raw, given := d.take(name)
	if !given || string(raw) == "null" {
		d.note(name, nil)
		return usual
	}
	value := d.integer(raw, name, fmt.Sprintf("an integer from %d to %d", low, high), low, high)
	d.note(name, value)
	return value
}

// IntegerOr reads such an integer, or a word instead: then isWord is true, and the value is the
// default.
func (d *Document) IntegerOr(name, word string, low, high, usual int64) (value int64, isWord bool) {
	raw, given := d.take(name)
	if !given || string(raw) == "null" {
		d.note(name, nil)
		return usual, false
	}
	var text string
	if json.Unmarshal(raw, &text) == nil && text == word {
		d.note(name, word)
		return usual, true
	}
	value = d.integer(raw, name, fmt.Sprintf("an integer from %d to %d or '%s'", low, high, word), low, high)
	d.note(name, value)
	return value, false
}

// Required reads an integer from low to high that has no default.
func (d *Document) Required(name string, low, high int64) int64 {
	raw, given := d.take(name)
	if !given {
		raw = json.RawMessage("null")
	}
	value := d.integer(raw, name, fmt.Sprintf("an integer from %d to %d", low, high), low, high)
	d.note(name, value)
	return value
}

// Number reads a number from low to high, a range that within describes in words; usual is the
// default for a missing field or null.
func (d *Document) Number(name string, low, high, usual float64, within string) (value float64) {
	raw, given := d.take(name)
	if !given || string(raw) == "null" {
		d.note(name, usual)
		return usual
	}
	text := string(raw)
	if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		// Floats that are no numbers of JSON: nan, and the infinities.
		kind := request.ErrType
		if strings.HasPrefix(describe(raw), "float") {
			kind = request.ErrValue
		}
		d.Refuse(kind, "%s: expected a number %s, got %s", name, within, describe(raw))
	} else if value, _ = strconv.ParseFloat(text, 64); !(low <= value && value <= high) {
		d.Refuse(request.ErrValue, "%s: expected a number %s, got %s", name, within, short(text))
	}
	d.note(name, value)
	return value
}

// Integers reads least to most integers from low to high, or nil for a missing field or null.
func (d *Document) Integers(name string, least, most int, low, high int64) (values []int64) {
	raw, given := d.take(name)
	if !given || string(raw) == "null" {
		d.note(name, nil)
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		d.Refuse(request.ErrType, "%s: expected a sequence of int, got %s", name, describe(raw))
		return nil
	}
	if len(items) < least || len(items) > most {
		d.Refuse(request.ErrValue, "%s: expected %d to %d integers, got %d", name, least, most, len(items))
		return nil
	}
	for i, item := range items {
		where := fmt.Sprintf("%s[%d]", name, i)
		values = append(values, d.integer(item, where, fmt.Sprintf("an integer from %d to %d", low, high), low, high))
	}
	d.note(name, values)
	return values
}

// Texts reads up to most texts, or nil for a missing field or null; they must be among known,
// unless known is empty. The caller writes the result by Note.
func (d *Document) Texts(name string, most int, known ...string) (values []string) {
	raw, given := d.take(name)
	if !given || string(raw) == "null" {
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		d.Refuse(request.ErrType, "%s: expected a sequence of str, got %s", name, describe(raw))
		return nil
	}
	if len(items) > most {
		d.Refuse(request.ErrValue, "%s: expected at most %d texts, got %d", name, most, len(items))
		return nil
	}
	values = make([]string, len(items))
	for i, item := range items {
		if json.Unmarshal(item, &values[i]) != nil || string(item) == "null" {
			d.Refuse(request.ErrType, "%s[%d]: expected a str, got %s", name, i, describe(item))
		} else if len(known) > 0 && !slices.Contains(known, values[i]) {
			d.Refuse(request.ErrValue, "%s[%d]: expected one of ('%s'), got %s", name, i, strings.Join(known, "', '"), describe(item))
		}
	}
	return values
}

// Fanouts reads the number of edges that each hop takes of a row, outermost hop first; -1: all.
func (d *Document) Fanouts(most int) []int64 {
	const name = "fanouts"
	raw, _ := d.take(name)
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil || items == nil {
		if raw == nil {
			raw = json.RawMessage("null")
		}
		var long struct{ Length int64 }
		if json.Unmarshal(raw, &long) == nil && long.Length > 0 {
			d.Refuse(request.ErrValue, "%s: expected 1 to %d hops, got %d", name, most, long.Length)
		}
		d.Refuse(request.ErrType, "%s: expected a sequence of int, outermost hop first, got %s", name, describe(raw))
	} else if len(items) < 1 || len(items) > most {
		d.Refuse(request.ErrValue, "%s: expected 1 to %d hops, got %d", name, most, len(items))
		return nil
	}
	fanouts := make([]int64, len(items))
	for i, item := range items {
		where := fmt.Sprintf("%s[%d]", name, i)
		// Beyond 64 bits too it is the largest that is told.
		if number, is := integral(item); is && number[0] != '-' && (len(number) > 18 || atoi(number) > request.MaxFanout) {
			d.Refuse(request.ErrValue, "%s: expected at most %d (-1 for all), got %s", where, request.MaxFanout, short(number))
			continue
		}
		fanouts[i] = d.integer(item, where, "an integer >= -1", -1, request.MaxFanout)
	}
	d.note(name, fanouts)
	return fanouts
}

// HopFanouts is the number of edges that a hop takes of a row: All, or one number per relation, by
// name.
type HopFanouts struct {
	All    int64
	ByName map[string]int64 // nil: all alike
}

// FanoutsByName reads fanouts, each of which may be an object of numbers by the names of relations.
func (d *Document) FanoutsByName(most int) []HopFanouts {
	return d.ByName("fanouts", "outermost hop first", most)
}

// ByName reads the numbers of hops, each an integer or an object of integers by names; -1: all.
// order describes the order of the hops in errors.
func (d *Document) ByName(name, order string, most int) []HopFanouts {
	raw, _ := d.take(name)
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil || items == nil {
		if raw == nil {
			raw = json.RawMessage("null")
		}
		d.Refuse(request.ErrType, "%s: expected a sequence of int or of dict, %s, got %s", name, order, describe(raw))
		return nil
	}
	if len(items) < 1 || len(items) > most {
		d.Refuse(request.ErrValue, "%s: expected 1 to %d hops, got %d", name, most, len(items))
		return nil
	}
	hops, written := make([]HopFanouts, len(items)), make([]any, len(items))
	for i, item := range items {
		var named map[string]json.RawMessage
		where := fmt.Sprintf("%s[%d]", name, i)
		bad := json.Unmarshal(item, &named) != nil || named == nil
		// A relation may be called "got", but its number is no text.
		if got := named["got"]; bad || len(got) > 0 && got[0] == '"' {
			hops[i].All = d.integer(item, where, "an integer >= -1", -1, request.MaxFanout)
			written[i] = hops[i].All
			continue
		}
		hops[i].ByName = make(map[string]int64, len(named))
		for _, relation := range slices.Sorted(maps.Keys(named)) {
			at := fmt.Sprintf("%s[%q]", where, relation)
			hops[i].ByName[relation] = d.integer(named[relation], at, "an integer >= -1", -1, request.MaxFanout)
		}
		written[i] = hops[i].ByName
	}
	d.note(name, written)
	return hops
}

func (d *Document) integer(raw json.RawMessage, where, expected string, low, high int64) int64 {
	digits, whole := integral(raw)
	if !whole {
		d.Refuse(request.ErrType, "%s: expected %s, got %s", where, expected, describe(raw))
		return 0
	}
	value, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || value < low || value > high {
		d.Refuse(request.ErrValue, "%s: expected %s, got %s", where, expected, short(digits))
	}
	return value
}

// integral is the digits of an integer, and whether the value is one.
func integral(raw json.RawMessage) (digits string, is bool) {
	digits = string(raw)
	is = digits != "" && (digits[0] == '-' || digits[0] >= '0' && digits[0] <= '9') && !strings.ContainsAny(digits, ".eE")
	return digits, is
}

// atoi is a number of up to 18 digits.
func atoi(digits string) int64 {
	value, _ := strconv.ParseInt(digits, 10, 64)
	return value
}

// short returns a number as errors print it: a number of many digits by their count.
func short(digits string) string {
	if len(digits) <= longest {
		return digits
	}
	return fmt.Sprintf("one of %d digits", len(strings.TrimPrefix(digits, "-")))
}

// longest is the maximal number of bytes of a value in an error.
const longest = 40

// describe returns a value as Python's checks print it: its type, and the value if it is short.
func describe(raw json.RawMessage) string {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return "nothing"
	}
	kind, text := "", string(raw)
	switch v := value.(type) {
	case nil:
		kind, text = "NoneType", "None"
	case bool:
		if kind, text = "bool", "False"; v {
			text = "True"
		}
	case json.Number:
		if kind = "int"; strings.ContainsAny(text, ".eE") {
			kind = "float"
		}
	case string:
		kind, text = "str", "'"+v+"'"
		if strings.ContainsFunc(v, unicode.IsControl) {
			text = strconv.Quote(v)
		}
	case []any:
		kind = "list"
	case map[string]any:
		if got, ok := v["got"].(string); ok {
			return got
		}
		kind = "dict"
	}
	if kind == "int" {
		text = short(text)
	}
	if len(text) > longest {
		return kind
	}
	return kind + " " + text
}
