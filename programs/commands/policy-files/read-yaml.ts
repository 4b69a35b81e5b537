import { readdir, readFile, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { LineCounter, isNode, parseDocument } from 'yaml'
import type { Fault, PolicyFile } from '../../../domain/policy-files/read-files.js'

/** Maximum size of a file in bytes, and maximum number of files. No real policy comes close to these limits. */
const LARGEST = 16_000_000
const MOST_FILES = 50_000

/** The files of a folder that contain valid YAML, and the faults found in all other files. */
export interface Folder {
  files: PolicyFile[]
  faults: Fault[]
}

/**
 * Reads all YAML files in a folder and the folders in it. Files and folders whose names begin with a dot are left out.
 * @throws {Error} of Node.js if the folder or a file cannot be read, and Error if there are too many files.
 */
export async function readFolder(folder: string): Promise<Folder> {
  const files: PolicyFile[] = []
  const faults: Fault[] = []
  for (const path of await listYaml(folder)) {
    const shown = relative(folder, path).split(sep).join('/')
    const { size } = await stat(path)
    if (size > LARGEST) faults.push({ place: shown, why: `it has ${size} bytes; at most ${LARGEST} are read.` })
    else readText(shown, await readFile(path, 'utf8'), { files, faults })
  }
  return { files, faults }
}

async function listYaml(folder: string): Promise<string[]> {
  const found: string[] = []
  const entries = await readdir(folder, { withFileTypes: true })
  for (const { name } of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (name.startsWith('.')) continue
    const path = join(folder, name)
    // `stat` follows links to files and folders, so that their content is read as well.
    const kind = await stat(path)
    if (kind.isDirectory()) found.push(...(await listYaml(path)))
    else if (/\.ya?ml$/i.test(name)) found.push(path)
    if (found.length > MOST_FILES) throw new Error(`${folder} has more than ${MOST_FILES} YAML files`)
  }
  return found
}

/**
 * Parses the text of one file. Each syntax error or warning of the YAML parser becomes a fault with its line number.
 */
function readText(path: string, text: string, { files, faults }: Folder): void {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true })
  const wrong = [...document.errors, ...document.warnings]
  for (const { pos, message } of wrong) faults.push({ place: `${path}:${lines.linePos(pos[0]).line}`, why: message })
  if (wrong.length > 0) return
  try {
    files.push({
      path,
      value: document.toJS(),
      placeOf(part) {
        // If a part is missing in the file, the position of the part around it is returned.
        for (let length = part.length; length >= 0; length--) {
          const node = length === 0 ? document.contents : document.getIn(part.slice(0, length), true)
          if (isNode(node) && node.range) return `${path}:${lines.linePos(node.range[0]).line}`
        }
        return `${path}:1`
      },
    })
  } catch (error) {
    // Only here does the YAML library refuse aliases that would expand to an excessive size.
    faults.push({ place: path, why: (error as Error).message })
  }
}
