package keeper

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/limpet-sh/limpet/internal/exact"
)

// plainSpec is a Spec as encoding/json has it, which is what older limpets read. Beside it are the paths byte for byte, if one of
// them is no UTF-8.
type (
	plainSpec Spec
	sentSpec  struct {
		plainSpec
		Exact *paths `json:"exact,omitempty"`
	}
	paths struct {
		Dir       exact.String  `json:"dir,omitempty"`
		Bash      exact.String  `json:"bash,omitempty"`
		InitFiles exact.Strings `json:"init_files,omitempty"`
		Args      exact.Strings `json:"args,omitempty"`
		Audit     exact.String  `json:"audit,omitempty"`
	}
)

// MarshalJSON implements [json.Marshaler].
func (s Spec) MarshalJSON() ([]byte, error) {
	sent := sentSpec{plainSpec: plainSpec(s)}
	if all := slices.Concat([]string{s.Dir, s.Bash, s.Audit}, s.InitFiles, s.Args); slices.ContainsFunc(all, func(path string) bool { return !utf8.ValidString(path) }) {
		sent.Exact = &paths{exact.String(s.Dir), exact.String(s.Bash), s.InitFiles, s.Args, exact.String(s.Audit)}
	}
	return json.Marshal(sent)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *Spec) UnmarshalJSON(b []byte) error {
	var sent sentSpec
	if err := json.Unmarshal(b, &sent); err != nil {
		return err
	}
	*s = Spec(sent.plainSpec)
	if e := sent.Exact; e != nil {
		s.Dir, s.Bash, s.InitFiles, s.Args, s.Audit = string(e.Dir), string(e.Bash), e.InitFiles, e.Args, string(e.Audit)
	}
	return nil
}
