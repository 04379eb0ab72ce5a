// Package outcome reads in the body of an answer whose status is a success what was not done all the same.
package outcome

import (
	"bytes"
	"encoding/json"
)

// Most is how many bytes of an answer have to be read for that: the longest of them names 1,000 objects of S3.
const Most = 2 << 20

// BrokeOff is what was not done if the end of an answer, which would say this, did not come.
const BrokeOff = "the answer broke off before it said whether all was done"

// Undone returns what a member of a JSON object says was not done; empty: all was done, or there is no such member, or the body is
// longer than what was read of it. done reports whether a value of the member says that all was done. broke reports whether the body
// broke off before its end. An answer that was streamed is a list of such objects, and each of them may say it.
func Undone(body []byte, member string, broke bool, done func(value []byte) bool) string {
	if dec := json.NewDecoder(bytes.NewReader(body)); opens(dec, '[') {
		for dec.More() {
			var part json.RawMessage
			if dec.Decode(&part) != nil {
				break // it broke off, or it is longer than what was read
			}
			if undone := ofObject(part, member, false, done); undone != "" {
				return undone
			}
		}
		if broke {
			return BrokeOff
		}
		return ""
	}
	return ofObject(body, member, broke, done)
}

// opens reports whether a text begins with this bracket.
func opens(dec *json.Decoder, bracket json.Delim) bool {
	begin, err := dec.Token()
	return err == nil && begin == bracket
}

func ofObject(body []byte, member string, broke bool, done func(value []byte) bool) string {
	value, begun := valueOf(body, member)
	var short bytes.Buffer
	switch {
	case value == nil && begun && broke: // a value that says that all was done is short
		return member + " is not empty, and the answer broke off"
	case value == nil && broke:
		return BrokeOff
	case value == nil && begun && len(body) >= Most:
		return member + " is not empty"
	case json.Compact(&short, value) != nil || done(short.Bytes()):
		return ""
	}
	return member + " is " + short.String()
}

// valueOf returns a member of a JSON object, as far as the text goes. begun reports whether the member is there at all.
func valueOf(body []byte, member string) (value json.RawMessage, begun bool) {
	dec := json.NewDecoder(bytes.NewReader(body))
	if !opens(dec, '{') {
		return nil, false
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, false
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, name == member
		}
		if name == member {
			return v, true
		}
	}
	return nil, false
}
