import { execFile } from 'node:child_process'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** The module that lists all tools. A build replaces it by data, and by imports that run when a tool is first called. */
const TOOLS = /[/\\]tools[/\\]catalogue[/\\]index\.ts$/
/** The module that lists resources, templates and prompts. A build replaces it by data. */
const KNOWLEDGE = /[/\\]knowledge[/\\]catalogue[/\\]index\.ts$/
/** The prefix of the modules that load the tools of one area. */
const AREA = 'tools-of:'
/** The folders of tools/ that contain no tools. */
const NO_AREAS = ['answers', 'catalogue']

/**
 * Creates an esbuild plugin that puts the catalogue in place of the code: of the tools, and of the texts in knowledge/. The
 * catalogue is computed by running the sources. The tools of one area are loaded together, because they share most of what they
 * need, and because a module for each tool would have to be put together from forty files.
 *
 * @param {string} root the folder of the project.
 * @param {string} folder a folder below `root`, in which a program is written and removed again.
 */
export async function bundleCatalogue(root, folder) {
  // In a fresh clone, this package is only available after the install at the beginning of the programs that call this.
  const { build } = await import('esbuild')
  const { tools, knowledge } = await computeCatalogue(build, root, folder)
  const names = tools.map(({ name }) => name)
  const areas = new Map(names.map((name) => [name, areaOf(root, name)]))
  const contents = `
    import { readCatalogue } from './read-catalogue.js'
    export const catalogue = readCatalogue(${asText(tools)}, {
      ${[...areas].map(([name, area]) => `'${name}': () => import('${AREA}${area}')`).join(',\n')}
    })`
  return {
    name: 'catalogue',
    setup(bundler) {
      bundler.onLoad({ filter: KNOWLEDGE }, () => ({ contents: `export const catalogue = ${asText(knowledge)}` }))
      bundler.onLoad({ filter: TOOLS }, () => ({
        contents,
        resolveDir: join(root, 'tools/catalogue'),
      }))
      bundler.onResolve({ filter: new RegExp(`^${AREA}`) }, ({ path }) => ({
        path: path.slice(AREA.length),
        namespace: 'tools-of',
      }))
      bundler.onLoad({ filter: /.*/, namespace: 'tools-of' }, ({ path: area }) => ({
        contents: loadArea(
          area,
          names.filter((name) => areas.get(name) === area),
        ),
        resolveDir: join(root, 'tools'),
      }))
    },
  }
}

/** Returns the code of a value, as a text that is parsed, because V8 parses JSON faster than it compiles code. */
const asText = (value) => `JSON.parse(${JSON.stringify(JSON.stringify(value))})`

/** Returns the code of the module that loads the tools of one area, with what tools/index.ts adds to each. */
const loadArea = (area, names) => `
  import { completeTool } from './answers/approval/complete-tool.js'
  ${names.map((name, at) => `import tool${at} from './${area}/${name}.js'`).join('\n')}
  export const tools = { ${names.map((name, at) => `'${name}': completeTool(tool${at})`).join(', ')} }`

/** Returns the folder of tools/ that contains the file of a tool. Throws if there is not exactly one. */
function areaOf(root, name) {
  const areas = readdirSync(join(root, 'tools'), { recursive: true, encoding: 'utf8' }).flatMap((path) => {
    const [area, file, ...rest] = path.split(/[/\\]/)
    return file === `${name}.ts` && rest.length === 0 && !NO_AREAS.includes(area) ? [area] : []
  })
  if (areas.length === 1) return areas[0]
  throw new Error(`tools/<area>/${name}.ts must be there exactly once, because its name is that of the tool`)
}

/** Computes the facts and the listed schemas of all tools, and the lists of the texts in knowledge/. */
async function computeCatalogue(build, root, folder) {
  const script = join(folder, 'compute-catalogue.mjs')
  const contents = `
    import { dataOf } from './tools/catalogue/catalogue-of.js'
    import { tools } from './tools/index.js'
    import { listKnowledge } from './knowledge/catalogue/list-knowledge.js'
    console.log(JSON.stringify({ tools: tools.map(dataOf), knowledge: await listKnowledge() }))`
  await build({
    absWorkingDir: root,
    stdin: { contents, loader: 'ts', resolveDir: root },
    outfile: script,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    logLevel: 'warning',
  })
  const { stdout } = await promisify(execFile)(process.execPath, [script], { maxBuffer: 16 * 1024 * 1024 })
  rmSync(script)
  return JSON.parse(stdout)
}
