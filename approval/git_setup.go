package approval

import (
	"path"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

// Git is how git is set up in a directory.
type Git struct {
	Settings []string // "name=value", of all files of configuration that git reads there; the name of a setting without a value stands alone
	Hooked   bool     // there is a hook that runs when git only reads
	Nested   bool     // there are repositories within the repository, with a configuration of their own, that git goes into
}

// calmSections are those of git's settings that have what only reads run nothing.
var calmSections = fields(`user author committer alias advice color column branch pull push fetch rebase merge mergetool difftool commit tag url http https safe help gc maintenance rerere gui gitk init
	receive transfer credential status stash feature pack index versionsort web lfs hub github gist clean checkout blame grep notes mailmap i18n protocol includeif include am apply bundle worktree delta
	interactive sequence ssh uploadpack uploadarchive trailer gpg sendemail format log remote extensions core diff pager submodule filter fsck repack pretty showbranch reflog`)

// calmCore are the settings of the section core.
var calmCore = fields(`repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf quotepath abbrev excludesfile attributesfile editor compression
	loosecompression bigfilethreshold whitespace untrackedcache preloadindex hookspath sshcommand askpass worktree checkstat trustctime commentchar commentstring sharedrepository protectntfs protecthfs
	longpaths fscache sparsecheckout sparsecheckoutcone commitgraph multipackindex splitindex filesreflocktimeout packedrefstimeout fsync fsyncmethod fsyncobjectfiles notesref hidedotfiles gitproxy`)

// calmPagers are programs that show a text, and go by no other file than their own.
var calmPagers = fields("cat less more delta diff-so-fancy bat most true false 1 0 yes no on off")

// runs returns what git would run there, for a command that reads objects, or files that are checked out; empty: nothing.
func (g Git) runs(worktree bool) string {
	for _, setting := range g.Settings {
		if name, _, _ := strings.Cut(setting, "="); !calmSetting(setting, worktree) {
			return "git's setting " + name + " may have it run a program there"
		}
	}
	switch {
	case worktree && g.Hooked:
		return "a hook of the repository runs there"
	case worktree && g.Nested:
		return "there are repositories within the repository, with a configuration of their own"
	}
	return ""
}

// settingChecks are the placeholders of gitChecks, and all in brackets, of a format that is in lower case.
var settingChecks = lazyregexp.New(`%[-+ ]*[g(]`)

func calmSetting(setting string, worktree bool) bool {
	name, value, _ := strings.Cut(setting, "=")
	name, value = strings.ToLower(name), strings.ToLower(strings.TrimSpace(value))
	section, rest, _ := strings.Cut(name, ".")
	key := rest[strings.LastIndexByte(rest, '.')+1:]
	off := value == "false" || value == "no" || value == "off" || value == "0" || value == "" && strings.Contains(setting, "=")
	switch {
	case !calmSections[section]:
		return false
	case name == "core.fsmonitor", name == "log.showsignature", section == "remote" && key == "promisor":
		return off
	case name == "core.pager", section == "pager":
		first, options, _ := strings.Cut(value, " ")
		return calmPagers[first] && strings.Trim(options, "abcdefghijklmnopqrstuvwxyz0123456789-= ") == ""
	case section == "core":
		return calmCore[key]
	case name == "status.submodulesummary":
		return off
	case name == "diff.submodule":
		return value == "short"
	case section == "extensions":
		return key != "partialclone"
	case section == "format" || section == "pretty":
		return !settingChecks().MatchString(value)
	case name == "branch.sort" || name == "tag.sort":
		return !strings.Contains(value, "sig")
	case section == "diff":
		driver := strings.Contains(rest, ".")
		return name != "diff.external" && (!driver || slices.Contains([]string{"xfuncname", "funcname", "wordregex", "binary", "algorithm", "cachetextconv"}, key))
	case section == "filter":
		return !worktree || key == "required"
	case section == "submodule":
		return !worktree || name == "submodule.recurse" && off
	}
	return true
}

// gitUse is a command of git that is allowed if git is set up so.
type gitUse struct {
	looks    bool // it is one
	worktree bool
	within   string // the directory behind -C; empty: none
	tells    string // the name of a setting that it prints; remote: the URLs of remote repositories
}

// gitSecret are settings that have a password, a token or a cookie, by their name or in a URL.
var gitSecret = lazyregexp.New(`(?i)^credential\.|^[^=]*\.[^.=]*(token|pass|secret|header|cookie|credential)[^.=]*(=|$)|https?://[^/@\s]+@|://[^/@\s]*:[^/@\s]*@|[?&;][^=&\s]*(token|pass|secret|key|auth|sig)[^=&\s]*=`)

// secret reports whether a command prints a setting with a secret.
func (g Git) secret(tells string) bool {
	return slices.ContainsFunc(g.Settings, func(setting string) bool {
		section, _, _ := strings.Cut(strings.ToLower(setting), ".")
		n := min(len(tells), len(setting))
		prints := strings.EqualFold(setting[:n], tells) && (n == len(setting) || setting[n] == '=') || tells == "remote" && (section == "remote" || section == "url")
		return prints && gitSecret().MatchString(setting)
	})
}

// settleGit looks at how git is set up, wherever the script may be when it runs.
func (s *session) settleGit(f *Finding) {
	s.looked = true
	for _, dir := range s.places(f.git.within) {
		why := "in which directory git runs cannot be told"
		if dir != "" {
			set, err := s.opts.Git(dir, f.git.worktree)
			if why = set.runs(f.git.worktree); why == "" && set.secret(f.git.tells) {
				f.Rule, why = ruleRead, gitTells
			}
			if err != nil {
				why = "how git is set up there cannot be told: " + err.Error()
			}
		}
		if why != "" {
			f.Verdict, f.Reason = Ask, why
			return
		}
	}
}

// mostPlaces bounds the directories in which a script may be.
const mostPlaces = 8

// places returns the directories that the script may be in, with below behind each. A cd may fail, so that the directory before it
// counts, too. An empty string stands for a directory that is not known. A cd goes up by the words of its path, and git by the files: behind a symbolic
// link that is another directory, so that below stays as it is.
func (s *session) places(below string) []string {
	all := []string{s.opts.Dir}
	if !path.IsAbs(s.opts.Dir) {
		return []string{""}
	}
	step := func(to string, stay bool) bool {
		relative := !path.IsAbs(to)
		if to == "" || strings.HasPrefix(to, "-") || relative && s.opts.Exported != nil && s.opts.Exported("CDPATH") && stay {
			return false
		}
		var next []string
		for _, dir := range all {
			switch {
			case relative && stay:
				next = append(next, path.Join(dir, to))
			case relative:
				next = append(next, within(dir, to))
			case stay:
				next = append(next, path.Clean(to))
			default:
				next = append(next, to)
			}
		}
		if stay {
			next = append(next, all...)
		}
		slices.Sort(next)
		all = slices.Compact(next)
		return len(all) <= mostPlaces
	}
	for _, to := range s.moves {
		if !step(to, true) {
			return []string{""}
		}
	}
	if below != "" && !step(below, false) {
		return []string{""}
	}
	return all
}
