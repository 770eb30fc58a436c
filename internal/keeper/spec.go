package keeper

import (
	"encoding/json"

	"github.com/limpet-sh/limpet/internal/exact"
)

// plainSpec is a Spec as encoding/json has it, and exactSpec one whose paths keep their bytes.
type (
	plainSpec Spec
	exactSpec struct {
		plainSpec
		Dir       exact.String  `json:"dir,omitempty"`
		Bash      exact.String  `json:"bash,omitempty"`
		InitFiles exact.Strings `json:"init_files,omitempty"`
		Args      exact.Strings `json:"args,omitempty"`
		Audit     exact.String  `json:"audit,omitempty"`
	}
)

// MarshalJSON implements [json.Marshaler].
func (s Spec) MarshalJSON() ([]byte, error) {
	return json.Marshal(exactSpec{plainSpec(s), exact.String(s.Dir), exact.String(s.Bash), s.InitFiles, s.Args, exact.String(s.Audit)})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *Spec) UnmarshalJSON(b []byte) error {
	var in exactSpec
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*s = Spec(in.plainSpec)
	s.Dir, s.Bash, s.InitFiles, s.Args, s.Audit = string(in.Dir), string(in.Bash), in.InitFiles, in.Args, string(in.Audit)
	return nil
}
