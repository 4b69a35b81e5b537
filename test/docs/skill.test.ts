/** skills/: in the Agent Skills format (agentskills.io/specification), as it is generated, about tools that exist. */
import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { DOCUMENTS } from '../../knowledge/documents.js'
import { PROMPTS } from '../../knowledge/prompts.js'
import { SKILLS } from '../../scripts/docs/skills.js'
import { renderSkill } from '../../scripts/docs/render-skill.js'
import { tools } from '../../tools/index.js'
import { readPage, ROOT } from './commands.js'

const FIELDS = new Set(['name', 'description', 'license', 'compatibility', 'metadata', 'allowed-tools'])

for (const skill of SKILLS) {
  const folder = `skills/${skill.name}`
  const pages = renderSkill(skill, tools, (path) => readPage(join('knowledge', path)))
  const files = [...pages.keys()]
  const readSkill = (path: string) => pages.get(path)!

  t.test(`${skill.name}: front matter and size`, (t) => {
    const text = readSkill(`${folder}/SKILL.md`)
    const [, head, body] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(text)!
    const fields = parse(head!) as Record<string, unknown>
    t.same(
      Object.keys(fields).filter((field) => !FIELDS.has(field)),
      [],
    )
    t.equal(fields.name, skill.name, 'is called as its folder')
    t.match(fields.name, /^(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*$/)
    const lengthOf = (field: string) => (typeof fields[field] === 'string' ? fields[field].length : 0)
    t.ok(lengthOf('description') > 0 && lengthOf('description') <= 1024, `${lengthOf('description')} characters`)
    t.match(fields.description, /\buse it when\b/i, 'says when to use it')
    t.ok(lengthOf('compatibility') <= 500)
    t.ok(body!.split('\n').length < 500)
    t.ok(body!.length / 3 < 5_000, 'at three characters a token, which is few, within 5,000 tokens')
    t.end()
  })

  t.test(`${skill.name}: it has a page of its own, and one of each document and each job`, (t) => {
    t.equal(files.length, 1 + DOCUMENTS.length + PROMPTS.length)
    t.end()
  })

  t.test(`${skill.name}: every tool that it names exists, and it names every tool`, (t) => {
    const names = new Set(tools.map(({ name }) => name))
    const verbs = new Set([...names].map((name) => name.split('-')[0]))
    const codeIn = (text: string) => [...text.matchAll(/`([a-z]+(?:-[a-z]+)+)`/g)].map(([, word]) => word!)
    for (const path of files) {
      const text = readSkill(path)
      const wrong = codeIn(text).filter((word) => verbs.has(word.split('-')[0]) && !names.has(word))
      t.same(wrong, [], path)
      t.notMatch(text, /\{\{|illumio:\/\//, `${path}: nothing is left to fill in`)
    }
    const [, table] = /## Toolsets\n([\s\S]*?)\n## /.exec(readSkill(`${folder}/SKILL.md`))!
    t.same(new Set(codeIn(table!).filter((word) => names.has(word))), names)
    for (const { name, effect } of tools)
      t.equal(table!.includes(`\`${name}\`\\*`), effect !== 'read', `${name} is marked where it changes something`)
    t.end()
  })

  t.test(`${skill.name}: links lead to files beside it`, (t) => {
    for (const path of files) {
      for (const [, target] of readSkill(path).matchAll(/\]\(([^)]+)\)/g)) {
        const led = posix.join(posix.dirname(path), target!)
        t.ok(files.includes(led), `${path}: ${target}`)
      }
    }
    const linked = new Set(
      [...readSkill(`${folder}/SKILL.md`).matchAll(/\]\((references\/[^)]+)\)/g)].map(([, at]) => at),
    )
    t.equal(linked.size, files.length - 1, 'SKILL.md leads to each of them')
    t.end()
  })

  t.test(`${skill.name}: it stops before provisioning`, (t) => {
    const [, steps] = /## The order of work\n([\s\S]*?)\n## /.exec(readSkill(`${folder}/SKILL.md`))!
    const last = steps!.split(/^\d+\. /m).at(-1)!
    t.match(last, /^\*\*Stop\.\*\*/)
    const sentences = steps!.replaceAll(/\s+/g, ' ').split(/[.:;]/)
    for (const sentence of sentences.filter((one) => one.includes('`provision-policy`')))
      t.match(sentence, /`dry_run` true/, 'the only call of it is one that changes nothing')
    t.end()
  })
}

t.test('the package has the skills', (t) => {
  const { files } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { files: string[] }
  t.ok(files.includes('skills'))
  t.end()
})
