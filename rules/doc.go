// Package rules reads recurrence rules and answers when they fire.
package rules
