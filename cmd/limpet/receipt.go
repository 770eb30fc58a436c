package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/command"
)

// receiptLine says in one line how a command ended, what it cost and what it
// left behind:
//
//	exit 1, 12.3ms, cpu 10ms user 0s system, pipeline 0|1, left running: 4711 (sleep 50)
func receiptLine(res command.Result, err error) string {
	receipt := res.Receipt
	parts := []string{
		fmt.Sprintf("exit %d", codeOfResult(res, err)),
		res.Elapsed.Round(100 * time.Microsecond).String(),
		fmt.Sprintf("cpu %v user %v system", receipt.User, receipt.System),
	}
	if receipt.Signal != 0 {
		parts[0] += fmt.Sprintf(" (%s)", signalName(receipt.Signal))
	}
	if receipt.Pipeline != nil {
		stages := make([]string, len(receipt.Pipeline))
		for i, code := range receipt.Pipeline {
			stages[i] = strconv.Itoa(code)
		}
		parts = append(parts, "pipeline "+strings.Join(stages, "|"))
	}
	if len(receipt.Leftover) > 0 {
		left := make([]string, len(receipt.Leftover))
		for i, p := range receipt.Leftover {
			left[i] = p.String()
		}
		parts = append(parts, "left running: "+strings.Join(left, ", "))
	}
	if len(receipt.NotKept) > 0 {
		parts = append(parts, notKept(receipt))
	}
	return strings.Join(parts, ", ")
}

// notKept says in one line what the script has changed and the shell does not have.
func notKept(receipt command.Receipt) string {
	return "not kept: " + strings.Join(receipt.NotKept, "; ")
}
