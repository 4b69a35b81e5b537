/** What a release is refused for, and what it is made of. */
import t from 'tap'
import { fileNameOf } from '../../scripts/release/files.js'
import { findOpen, findProblems, readNotes, type ReleaseFacts } from '../../scripts/release/find-problems.js'
import { listContext } from '../../scripts/release/list-context.js'

const CHANGELOG = `# Changelog

## [Unreleased]

- not yet

## [1.2.0] - 2026-01-02

### Added

- this

## [1.1.0] - 2026-01-01

- that
`
const GOOD: ReleaseFacts = {
  tag: 'v1.2.0',
  commits: { tag: 'a1', head: 'a1' },
  changes: [],
  versions: { 'package.json': '1.2.0', 'server.json': '1.2.0', 'manifest.json': '1.2.0' },
  changelog: CHANGELOG,
}

t.test('a release of a tag is refused for everything that contradicts it', (t) => {
  const cases: [Partial<ReleaseFacts>, string[]][] = [
    [{}, []],
    [{ changes: [' M a.ts', '?? b.ts'] }, ['the tree is dirty:  M a.ts, ?? b.ts']],
    [{ tag: null, commits: { tag: null, head: 'a1' } }, ['HEAD has no tag: give one, or tag this commit']],
    [{ tag: 'v1.3.0' }, ['the tag is v1.3.0, and package.json says 1.2.0']],
    [{ commits: { tag: null, head: 'a1' } }, ['there is no tag v1.2.0']],
    [{ commits: { tag: 'b2', head: 'a1' } }, ['the tag v1.2.0 is another commit than the one that is checked out']],
    [{ versions: { ...GOOD.versions, 'server.json': '1.1.0' } }, ['server.json says 1.1.0, and package.json 1.2.0']],
    [
      { changelog: CHANGELOG.replace('[1.2.0] - 2026-01-02', '[1.2.0]') },
      ['CHANGELOG.md has no section [1.2.0] with a date and entries'],
    ],
  ]
  for (const [facts, problems] of cases) t.same(findProblems({ ...GOOD, ...facts }, false), problems)
  t.end()
})

t.test('a dry run needs neither a clean tree nor a tag, and contradictions are refused all the same', (t) => {
  const dirty = { ...GOOD, tag: null, commits: { tag: null, head: 'a1' }, changes: [' M a.ts'] }
  t.same(findProblems(dirty, true), [])
  const contradicting = {
    ...dirty,
    tag: 'v2.0.0',
    versions: { ...GOOD.versions, 'manifest.json': '1.0.0' },
    changelog: '',
  }
  t.equal(findProblems(contradicting, true).length, 3)
  t.end()
})

t.test('what the project does not know yet keeps it from being published', (t) => {
  const repository = { type: 'git', url: 'git+https://git.example.org/svc-mcp.git' }
  t.same(findOpen({ mcpName: 'org.example/svc-mcp', repository }), [])
  t.same(findOpen({ mcpName: 'com.example/svc-mcp' }), [
    'package.json has no repository, which provenance is about',
    'com.example/svc-mcp is a placeholder: nobody can prove to own com.example',
  ])
  t.end()
})

t.test('the notes are the section of the version alone', (t) => {
  t.equal(readNotes(CHANGELOG, '1.2.0'), '### Added\n\n- this')
  t.equal(readNotes(CHANGELOG, '1.1.0'), '- that')
  t.equal(readNotes(CHANGELOG, '1.1'), null)
  t.equal(
    readNotes('## [1.2.0] - 2026-01-02\n\n## [1.1.0] - 2026-01-01\n\n- that\n', '1.2.0'),
    null,
    'an empty section',
  )
  t.end()
})

t.test('files are named as npm names the tarball, with a scope too', (t) => {
  t.equal(fileNameOf({ name: 'svc-mcp', version: '1.2.0' }, '.tgz'), 'svc-mcp-1.2.0.tgz')
  t.equal(fileNameOf({ name: '@scope/svc-mcp', version: '1.2.0' }, '.tgz'), 'scope-svc-mcp-1.2.0.tgz')
  t.end()
})

t.test('the context of an image is what .dockerignore leaves', (t) => {
  const files = [
    'app.ts',
    'README.md',
    'CHANGELOG.md',
    'docs/a.md',
    'test/a.ts',
    'tests.ts',
    'knowledge/a.md',
    '.env.example',
  ]
  t.same(listContext(files, '# comment\ntest\ndocs\n*.md\n!CHANGELOG.md\n.env*\n'), [
    'app.ts',
    'CHANGELOG.md',
    'tests.ts',
    'knowledge/a.md',
  ])
  t.throws(() => listContext(files, '**/a.md\n'), /\.dockerignore: \*\*\/a\.md/)
  t.end()
})
