import { posix } from 'node:path'
import ts from 'typescript'
import { fillGlob, matchGlob } from './glob.js'
import { readGlobals, type GlobalUse } from './read-globals.js'
import { readImports, type Import } from './read-imports.js'
import { ENVIRONMENT_READER, ROOMS, STDIO_ENTRY, STDIO_NEVER_LOADS, type Room } from './rooms.js'

export interface SourceText {
  /** From the root of the repository, with `/`. */
  path: string
  text: string
}

export interface Violation {
  path: string
  line: number
  message: string
}

interface CheckedFile {
  path: string
  imports: Import[]
  globals: GlobalUse[]
  room: Room | undefined
  /** Values of the room's `{plugin}`. */
  captured: Record<string, string>
}

/**
 * Checks every import against the table of rooms, `process.env` against its only reader, and everything that stdio.ts loads against
 * writing to standard output. Pure: the files come in as text. A file outside every room is a violation too.
 */
export function checkBoundaries(sources: readonly SourceText[], rooms: readonly Room[] = ROOMS): Violation[] {
  const files = new Map(sources.map(({ path, text }) => [path, { path, ...enter(path, rooms), ...read(path, text) }]))
  const found: Violation[] = []
  for (const file of files.values()) {
    if (file.room === undefined) {
      found.push({ path: file.path, line: 1, message: 'is in no room; scripts/boundaries/rooms.ts names them all' })
      continue
    }
    for (const used of file.imports) found.push(...judgeImport(file, file.room, used, files))
    if (file.room.production && file.path !== ENVIRONMENT_READER) {
      for (const { line, name } of file.globals) {
        if (name === 'process.env' || name === 'process')
          found.push({
            path: file.path,
            line,
            message: `uses ${name}; only ${ENVIRONMENT_READER} may read the environment`,
          })
      }
    }
  }
  return [...found, ...judgeStdio(files)].sort((a, b) => a.path.localeCompare(b.path) || a.line - b.line)
}

export const renderViolation = ({ path, line, message }: Violation) => `${path}:${line} ${message}`

/** Modules that are another way to a global. */
const GLOBAL_MODULES = new Map([
  ['node:process', 'process'],
  ['node:console', 'console'],
])

function read(path: string, text: string): Pick<CheckedFile, 'imports' | 'globals'> {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true)
  const imports = readImports(file)
  const viaModules = imports.flatMap(({ line, specifier, typeOnly }) => {
    const name = typeOnly || specifier === null ? undefined : GLOBAL_MODULES.get(specifier)
    return name === undefined ? [] : [{ line, name }]
  })
  return { imports, globals: [...readGlobals(file), ...viaModules] }
}

function judgeImport(file: CheckedFile, room: Room, used: Import, files: ReadonlyMap<string, unknown>): Violation[] {
  const at = (message: string) => [{ path: file.path, line: used.line, message }]
  if (used.specifier === null) return room.production ? at('imports something computed, which no wall can see') : []
  const target = resolve(file.path, used.specifier, files)
  const allowed =
    target === null
      ? room.packages.some((name) => coversPackage(name, used.specifier!))
      : matchesAny(room.mayImport, target, file.captured) || takesOnly(room.mayTake?.[target], used)
  if (allowed) return []
  return at(`imports ${target ?? used.specifier}; ${describeRoom(room, file.captured)}`)
}

const takesOnly = (names: readonly string[] | undefined, { values }: Import) =>
  names !== undefined && values?.every((name) => names.includes(name)) === true

/** Follows what is loaded (type imports are not) from stdio.ts, breadth first, so that the path told is a shortest one. */
function judgeStdio(files: ReadonlyMap<string, CheckedFile>): Violation[] {
  const found: Violation[] = []
  const cameFrom = new Map<string, string | null>(files.has(STDIO_ENTRY) ? [[STDIO_ENTRY, null]] : [])
  for (const path of cameFrom.keys()) {
    const file = files.get(path)!
    const route = () => {
      const steps: string[] = []
      for (let step: string | null = path; step !== null; step = cameFrom.get(step) ?? null) steps.unshift(step)
      return `${STDIO_ENTRY} loads it (${steps.join(' > ')})`
    }
    for (const { line, name } of file.globals) {
      if (name === 'console' || (name === 'process.stdout' && path !== STDIO_ENTRY))
        found.push({ path, line, message: `uses ${name}, but ${route()} and standard output is for JSON-RPC` })
    }
    for (const { line, specifier, typeOnly } of file.imports) {
      if (typeOnly || specifier === null) continue
      const target = resolve(path, specifier, files)
      if (target !== null && files.has(target) && !cameFrom.has(target)) cameFrom.set(target, path)
      if (STDIO_NEVER_LOADS.some((name) => coversPackage(name, specifier))) {
        found.push({ path, line, message: `imports ${specifier}, but ${route()} and must start fast` })
      }
    }
  }
  return found
}

/** The file a relative specifier means (`./x.js` is written for `./x.ts`), or null for a package. */
function resolve(from: string, specifier: string, files: ReadonlyMap<string, unknown>): string | null {
  if (!specifier.startsWith('.')) return null
  const path = posix.join(posix.dirname(from), specifier)
  const source = path.replace(/\.(m?)js$/, '.$1ts')
  return files.has(source) || !files.has(path) ? source : path
}

function coversPackage(allowed: string, specifier: string): boolean {
  if (allowed === '*') return true
  if (allowed === 'node:*') return specifier.startsWith('node:')
  return specifier === allowed || specifier.startsWith(`${allowed}/`)
}

function enter(path: string, rooms: readonly Room[]): Pick<CheckedFile, 'room' | 'captured'> {
  for (const room of rooms) {
    for (const glob of room.files) {
      const captured = matchGlob(glob, path)
      if (captured !== null) return { room, captured }
    }
  }
  return { room: undefined, captured: {} }
}

const matchesAny = (globs: readonly string[], path: string, captured: Record<string, string>) =>
  globs.some((glob) => matchGlob(fillGlob(glob, captured), path) !== null)

function describeRoom(room: Room, captured: Record<string, string>): string {
  const taken = Object.entries(room.mayTake ?? {}).map(
    ([path, names]) => `${['types', ...names].join(', ')} of ${path}`,
  )
  const allowed = [...room.mayImport, ...taken, ...room.packages].map((entry) => fillGlob(entry, captured))
  return `${fillGlob(room.name, captured)} may import ${allowed.length === 0 ? 'nothing' : allowed.join(', ')}. ${room.why}`
}
