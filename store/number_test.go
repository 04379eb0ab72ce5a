package store

import "testing"

// Numbers are written without an exponent, and keep their digits.
func TestDigits(t *testing.T) {
	for number, want := range map[string]string{
		"0": "0", "-0": "0", "-0.0": "0.0", "7": "7", "-7.50": "-7.50", "1e3": "1000", "1E+3": "1000", "-1.5e3": "-1500", "1.50e1": "15.0", "1.50e2": "150",
		"1e-3": "0.001", "12.5e-1": "1.25", "0e5": "0", "0.0e-2": "0.000", "-0e2": "0", "0.00012e5": "12", "0.00012e4": "1.2", "1e1001": "1e1001", "1e99999999999": "1e99999999999",
	} {
		if is := digits(number); is != want {
			t.Errorf("%s is %s, want %s", number, is, want)
		}
	}
}
