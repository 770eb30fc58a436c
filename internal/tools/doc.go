// Package tools has nothing but tests: of the scripts that test and CI run.
package tools
