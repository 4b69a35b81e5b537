/** docs/clients: the same shape for every client, configuration that parses, names and addresses that exist. */
import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import t from 'tap'
import { isKnown } from '../../config/variables.js'
import { SECRETS } from '../../config/read-secrets.js'
import { readConfig } from '../../config/index.js'
import { anchorOf } from '../../scripts/docs/find-commands.js'
import { DEFAULT_NAMES } from '../surface/contract.js'
import { createReader, FOLDER, readClientPages, SECTIONS } from './client-pages.js'
import { readPage, ROOT } from './commands.js'

const pages = readClientPages()
const entries = pages.flatMap((page) => page.entries)
const index = readPage(`${FOLDER}/README.md`)
const BRIDGE = /^mcp-remote@\d+\.\d+\.\d+$/

t.test('every client has a page of the same shape, and the table has every page', (t) => {
  t.equal(pages.length, 12)
  for (const { path, headings } of pages) t.same(headings, [...SECTIONS], path)
  const rows = [...index.matchAll(/^\| \[(.+?)\]\((.+?)\) \|/gm)].map(([, title, file]) => [file, title])
  t.same(
    rows.sort(),
    pages.map(({ path, title }) => [posix.basename(path), title]),
  )
  t.end()
})

t.test('what is to be started is a program of this package, with variables that it knows', (t) => {
  const { bin } = JSON.parse(readPage('package.json')) as { bin: Record<string, string> }
  const local = entries.filter(({ section }) => section === 'stdio')
  t.same(
    [...new Set(local.map(({ where }) => where))],
    pages.map(({ path }) => `${path}#stdio`),
  )
  for (const { where, name, command, env, url } of local) {
    t.equal(name, 'svc-mcp', where)
    t.ok(command !== undefined && Object.hasOwn(bin, command), `${where}: ${command}`)
    t.equal(url, undefined, where)
    const unknown = Object.keys(env).filter(
      (one) => !isKnown(one) && !SECRETS.some((secret) => one === `${secret}_FILE`),
    )
    t.same(unknown, [], where)
    // As a client hands them on, with what it keeps itself in place of how the page writes it.
    const { API_KEY_FILE: _, API_SECRET_FILE: __, ...rest } = env
    t.equal(
      readConfig('stdio', { ...rest, API_KEY: 'api_1', API_SECRET: 'x' }).pce.url,
      'https://pce.example.com',
      where,
    )
  }
  t.end()
})

t.test('what is to be called over HTTP is the endpoint behind a TLS proxy', (t) => {
  const remote = entries.filter(({ section }) => section === 'Streamable HTTP')
  t.same(
    [...new Set(remote.map(({ where }) => where))],
    pages.map(({ path }) => `${path}#Streamable HTTP`),
  )
  for (const { where, name, command, args, url } of remote) {
    const address = url ?? args.find((one) => one.startsWith('https:'))
    t.equal(name, 'svc-mcp', where)
    t.equal(address, 'https://mcp.example.com/mcp', where)
    if (command === undefined) continue
    // Whoever registers a name later decides what an unpinned one runs.
    t.same([command, args[0], BRIDGE.test(args[1]!)], ['npx', '-y', true], where)
  }
  t.end()
})

t.test('pages name no package that is not published, and lead to what exists', (t) => {
  for (const [path, text] of [
    [`${FOLDER}/README.md`, index] as const,
    ...pages.map((one) => [one.path, one.text] as const),
  ]) {
    t.notMatch(text, /npx (-y )?svc-mcp/, path)
    for (const [, target, anchor] of text.matchAll(/\]\(([^)#:\s]*)(?:#([^)]+))?\)/g)) {
      const file = target === '' ? path : posix.join(FOLDER, target!)
      t.ok(existsSync(join(ROOT, file)), `${path}: ${file}`)
      if (anchor === undefined) continue
      const anchors = [...readPage(file).matchAll(/^#+ (.+)$/gm)].map(([, title]) => anchorOf(title!))
      t.ok(anchors.includes(anchor), `${path}: ${file}#${anchor}`)
    }
  }
  t.end()
})

t.test('the server starts with the configuration of a page in each format', async (t) => {
  const reader = await createReader(t)
  for (const page of ['vs-code', 'codex', 'continue']) {
    const where = `${FOLDER}/${page}.md#stdio`
    const client = await reader.connect(entries.find((entry) => entry.where === where)!)
    t.equal((await client.listTools()).tools.length, DEFAULT_NAMES.length, where)
  }
})
