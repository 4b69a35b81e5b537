/** The subjects of docs/decisions.md, each with the numbers of its decisions. */
const SUBJECTS: Readonly<Record<string, string>> = {
  'Tools and their lists': 'D1 D5 D61 D78 D83 D100 D101 D121 D122 D123 D124 D131 D168 D169 D242 D243 D258',
  Answers: 'D2 D3 D4 D79 D93 D94 D96 D97 D115 D170 D175 D188 D209 D214 D254 D255 D256 D257 D288',
  'MCP over stdio and HTTP': 'D6 D7 D9 D12 D43 D80 D147 D148 D157 D158 D159 D171 D172 D211 D212 D215 D248 D249 D252',
  Identity: 'D13 D14 D15 D16 D17 D44 D45 D46 D82 D110 D203 D204 D246 D247 D278 D279 D280 D281 D290 D291 D292 D294',
  Confirmation:
    'D19 D20 D21 D75 D76 D77 D141 D143 D144 D145 D146 D149 D153 D154 D155 D156 D185 D219 D220 D232 D234 D237 D238 D286 D287 D293 D295',
  'Configuration and start': 'D8 D10 D11 D86 D103 D112 D113 D164 D198',
  'PCE client': 'D18 D22 D23 D47 D48 D70 D71 D72 D73 D74 D84 D85 D104 D132 D174',
  'Judging policy': 'D28 D90 D91 D92 D118 D173 D178 D180 D181 D184 D206 D233 D241 D266 D289 D300 D301',
  'Rules and changes':
    'D98 D119 D176 D177 D179 D182 D183 D186 D187 D189 D190 D191 D192 D207 D210 D216 D222 D224 D225 D226 D227 D229 D230 D231 D235 D262 D263 D267 D268 D269 D270 D272 D274 D275 D276 D277 D297',
  Traffic: 'D136 D137 D138 D223 D228 D264 D265',
  'State and secrets': 'D24 D39 D40 D41 D42 D105 D111 D139 D140 D142 D165 D166 D213 D240 D271 D282 D283 D296 D304 D314',
  'Audit, logs and metrics': 'D25 D27 D81 D109 D160 D161 D162 D163 D167 D217 D236 D284 D285',
  'Knowledge and pictures': 'D126 D127 D128 D129 D193 D194 D195 D196',
  'Rooms, build and suite':
    'D51 D52 D53 D54 D55 D56 D57 D58 D59 D60 D106 D107 D108 D116 D197 D218 D221 D244 D250 D251 D253 D259 D260 D261 D310 D311',
  'Deployment and releases': 'D150 D151 D152 D199 D200 D201 D202 D245',
}
const HEADING = /^### (D\d+)\. (.+)$/gm

/**
 * Renders the index by subject in docs/decisions.md: one line for each subject, with a link to each of its entries.
 * Throws Error if an entry is in no subject or in two, is not on the page, or is in the wrong order.
 *
 * @param page the text of the page.
 */
export function renderDecisionIndex(page: string): string {
  const titles = new Map([...page.matchAll(HEADING)].map(([, number, title]) => [number!, title!]))
  const indexed = Object.values(SUBJECTS).flatMap((numbers) => numbers.split(' '))
  const faults = [
    ...[...titles.keys()].filter((number) => !indexed.includes(number)).map((number) => `${number} has no subject`),
    ...indexed.filter((number) => !titles.has(number)).map((number) => `there is no ${number}`),
    ...indexed.filter((number, at) => indexed.indexOf(number) !== at).map((number) => `${number} has two subjects`),
    ...[...titles.keys()]
      .map((number) => Number(number.slice(1)))
      .filter((number, at, all) => at > 0 && number < all[at - 1]!)
      .map((number) => `D${number} stands after a higher number`),
  ]
  if (faults.length > 0) throw new Error(`docs/decisions.md, scripts/docs/render-decisions.ts: ${faults.join('; ')}`)
  return Object.entries(SUBJECTS)
    .map(
      ([subject, numbers]) =>
        `- **${subject}**: ${numbers
          .split(' ')
          .map((n) => linkTo(n, titles.get(n)!))
          .join(' · ')}`,
    )
    .join('\n')
}

/** Derives the anchor of a heading as GitHub does: lower case, without punctuation, hyphens for spaces. */
function linkTo(number: string, title: string): string {
  const anchor = `${number}. ${title}`
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
  return `[${number} ${title}](#${anchor})`
}
