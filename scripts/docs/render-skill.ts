import { stringify } from 'yaml'
import { type Document, DOCUMENTS, fileOf } from '../../knowledge/documents.js'
import { fillText } from '../../knowledge/fill-text.js'
import { fileOf as promptFileOf, type Prompt, PROMPTS } from '../../knowledge/prompts.js'
import { fileOf as skillFileOf, type Skill } from './skills.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import { type AnyTool, isInDefault, TOOLSETS } from '../../tools/define.js'
import { renderTable } from './markdown.js'

const SOURCE = '<!-- Generated from knowledge/ and tools/ by `npm run generate`. -->'
const URI = /`?(illumio:\/\/[\w/-]+)`?/g

/**
 * Returns the path of a referenced text below the folder of its skill. All these texts are in one folder without
 * subfolders, because agents follow links only one level deep.
 */
const referenceOf = ({ uri }: Pick<Document, 'uri'>) => `${uri.split('/').at(-1)}.md`
const jobOf = ({ name }: Pick<Prompt, 'name'>) => `job-${name}.md`

/**
 * Renders the files of a skill in the Agent Skills format, by path below the root: SKILL.md, and the documents and
 * prompts to which it links. The latter are for agents whose client shows no resources. Throws Error for a tool or
 * argument that does not exist.
 *
 * @param read returns a text of knowledge/ by its path there.
 */
export function renderSkill(
  skill: Skill,
  list: readonly AnyTool[],
  read: (path: string) => string,
): Map<string, string> {
  const tools = new Map(catalogueOf(list).map((tool) => [tool.name, tool]))
  const uris = new Map(DOCUMENTS.map((document) => [document.uri, referenceOf(document)]))
  /**
   * Fills in the names of tools, removes the marks of conditional lines, and converts resources to links below
   * `folder`.
   */
  const fill = (text: string, folder = '', values?: Record<string, string>) =>
    fillText(text, { tools, ...(values && { values }) }).replaceAll(URI, (whole, uri: string) => {
      const file = uris.get(uri)
      return file === undefined ? whole : `[${file}](${folder}${file})`
    })
  const { name, description, compatibility } = skill
  const head = stringify({ name, description, license: 'Apache-2.0', compatibility }, { lineWidth: 0 })
  const body = read(skillFileOf(skill))
    .replace('{{#toolsets}}', renderToolsets(list))
    .replace('{{#references}}', renderReferences())
  const folder = `skills/${name}`
  return new Map([
    [`${folder}/SKILL.md`, `---\n${head}---\n\n${SOURCE}\n\n${fill(body, 'references/')}`],
    ...DOCUMENTS.map((document): [string, string] => [
      `${folder}/references/${referenceOf(document)}`,
      `${SOURCE}\n\n${fill(read(fileOf(document)))}`,
    ]),
    ...PROMPTS.map((prompt): [string, string] => [
      `${folder}/references/${jobOf(prompt)}`,
      `${SOURCE}\n\n# ${prompt.title}\n\n${prompt.description}\n${renderArguments(prompt)}\n${fill(read(promptFileOf(prompt)), '', valuesFor(prompt))}`,
    ]),
  ])
}

/** Renders every toolset with its tools, and marks the tools that change something. */
function renderToolsets(tools: readonly AnyTool[]): string {
  const rows = Object.entries(TOOLSETS).map(([name, purpose]) => {
    const own = tools.filter(({ toolset }) => toolset === name)
    const isOff = own.some((tool) => !isInDefault(tool))
    return [
      `\`${name}\`${isOff ? ' (+)' : ''}`,
      purpose,
      own.map((tool) => `{{${tool.name}}}${tool.effect === 'read' ? '' : '\\*'}`).join(', '),
    ]
  })
  return renderTable(['Toolset', 'To', 'Tools'], rows)
}

function renderReferences(): string {
  const jobs = PROMPTS.map((prompt) => `- [${prompt.title}](references/${jobOf(prompt)}): ${prompt.description}`)
  const documents = DOCUMENTS.map(
    (document) => `- [${document.name}](references/${referenceOf(document)}): ${document.description}`,
  )
  return ['Jobs, step by step:', '', ...jobs, '', 'Background:', '', ...documents].join('\n')
}

/** Returns a placeholder in capitals for an argument that the reader must supply. */
const placeholderOf = (name: string) =>
  name.replace('application_environment', 'environment').replace('_name', '').toUpperCase()

const valuesFor = (prompt: Prompt) =>
  prompt.valuesOf(Object.fromEntries(prompt.arguments.map(({ name }) => [name, placeholderOf(name)])))

function renderArguments({ arguments: list }: Prompt): string {
  return list.map(({ name, description }) => `\n- ${placeholderOf(name)}: ${description}`).join('') + '\n'
}
