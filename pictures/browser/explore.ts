/**
 * Makes a picture interactive: the reader can zoom, drag and search it, hide the lines of a policy decision, and switch
 * to another view of the same data. The script only reads the page, and changes nothing but classes, the `hidden`
 * attribute and the transform of the drawing.
 */
interface Look {
  x: number
  y: number
  scale: number
}

const SCALES = { least: 0.2, most: 8, step: 1.3 }
const PAN = 60

/** Makes one picture on the page interactive. Must be called once for each result of `renderFigure`. */
export function explore(root: HTMLElement): void {
  const stage = root.querySelector<HTMLElement>('.stage')
  if (stage === null) return
  const views = [...stage.querySelectorAll<SVGSVGElement>(':scope > svg')]
  const looks = views.map((): Look => ({ x: 0, y: 0, scale: 1 }))
  const frames = views.map(frameOf)
  let at = 0
  let focus: Set<string> | null = null
  stage.classList.add('live')
  for (const tools of root.querySelectorAll<HTMLElement>('.tools')) tools.hidden = false

  const apply = () => {
    const { x, y, scale } = looks[at]!
    frames[at]!.setAttribute('transform', `translate(${x} ${y}) scale(${scale})`)
  }
  /** Zooms in or out while the given point of the drawing stays where it is. */
  const zoom = (factor: number, point = centre()) => {
    const look = looks[at]!
    const scale = Math.min(SCALES.most, Math.max(SCALES.least, look.scale * factor))
    const ratio = scale / look.scale
    Object.assign(look, { scale, x: point.x - (point.x - look.x) * ratio, y: point.y - (point.y - look.y) * ratio })
    apply()
  }
  const pan = (x: number, y: number) => {
    looks[at]!.x += x
    looks[at]!.y += y
    apply()
  }
  const fit = () => {
    looks[at] = { x: 0, y: 0, scale: 1 }
    apply()
  }
  const centre = () => {
    const { width, height } = views[at]!.viewBox.baseVal
    return { x: width / 2, y: height / 2 }
  }
  const pointOf = (event: MouseEvent) => {
    const matrix = views[at]!.getScreenCTM()
    return matrix === null ? centre() : new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse())
  }

  const show = (view: number) => {
    at = view
    for (const [index, svg] of views.entries()) svg.toggleAttribute('hidden', index !== view)
    const radio = root.querySelector<HTMLInputElement>(`input[name="view"][value="${view}"]`)
    if (radio !== null) radio.checked = true
    setFocus(focus)
  }

  /**
   * Highlights the named groups of workloads and the groups that communicate with them; with null, nothing is dimmed.
   */
  function setFocus(names: Set<string> | null): void {
    focus = names
    for (const svg of views) {
      svg.classList.toggle('focused', names !== null)
      if (names === null) continue
      const nodes = [...svg.querySelectorAll<SVGGElement>('.node')]
      const hits = new Set(nodes.filter((node) => names.has(node.dataset.name ?? '')).map((node) => node.dataset.n))
      const near = new Set(hits)
      for (const path of svg.querySelectorAll<SVGPathElement>('.edge path')) {
        const { f, t } = path.dataset
        const isNear = f !== undefined && (hits.has(f) || hits.has(t))
        path.classList.toggle('near', isNear)
        if (isNear) near.add(f).add(t)
      }
      for (const node of nodes) {
        node.classList.toggle('hit', names.has(node.dataset.name ?? ''))
        node.classList.toggle(
          'near',
          node.dataset.n === undefined ? names.has(node.dataset.name ?? '') : near.has(node.dataset.n),
        )
      }
    }
  }

  const find = root.querySelector<HTMLInputElement>('#find')
  const found = root.querySelector<HTMLElement>('#found')
  const namesIn = (svg: SVGSVGElement, wanted: string) =>
    [...svg.querySelectorAll<SVGGElement>('.node')]
      .map((node) => node.dataset.name ?? '')
      .filter((name) => name.toLowerCase().includes(wanted))
  const search = () => {
    const wanted = (find?.value ?? '').trim().toLowerCase()
    for (const row of root.querySelectorAll<HTMLTableRowElement>('tbody tr'))
      row.hidden = wanted !== '' && !row.textContent.toLowerCase().includes(wanted)
    if (wanted === '') {
      if (found !== null) found.textContent = ''
      return setFocus(null)
    }
    const counts = views.map((svg) => namesIn(svg, wanted).length)
    // The search switches to another view if that view has more matches, for example because a matching group is folded
    // in the current view.
    const best = counts.indexOf(Math.max(...counts))
    if ((counts[at] ?? 0) < (counts[best] ?? 0)) show(best)
    const names = namesIn(views[at]!, wanted)
    if (found !== null) found.textContent = names.length === 0 ? 'nothing found' : `${names.length} found`
    setFocus(names.length === 0 ? null : new Set(names))
  }
  find?.addEventListener('input', search)

  const buttons: Readonly<Record<string, () => void>> = {
    in: () => zoom(SCALES.step),
    out: () => zoom(1 / SCALES.step),
    fit,
  }
  for (const [id, act] of Object.entries(buttons)) root.querySelector(`#${id}`)?.addEventListener('click', act)
  for (const box of root.querySelectorAll<HTMLInputElement>('.tools input[type="checkbox"]'))
    box.addEventListener('change', () => root.classList.toggle(`hide-${box.value}`, !box.checked))
  for (const radio of root.querySelectorAll<HTMLInputElement>('input[name="view"]'))
    radio.addEventListener('change', () => show(Number(radio.value)))

  stage.addEventListener(
    'wheel',
    (event) => {
      // Without a modifier key, the mouse wheel scrolls the page instead of zooming the picture.
      if (!event.ctrlKey && !event.metaKey) return
      event.preventDefault()
      zoom(event.deltaY < 0 ? SCALES.step : 1 / SCALES.step, pointOf(event))
    },
    { passive: false },
  )
  const keys: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => pan(PAN, 0),
    ArrowRight: () => pan(-PAN, 0),
    ArrowUp: () => pan(0, PAN),
    ArrowDown: () => pan(0, -PAN),
    '+': buttons.in!,
    '=': buttons.in!,
    '-': buttons.out!,
    '0': fit,
    Escape: () => {
      if (find !== null) find.value = ''
      search()
    },
  }
  stage.addEventListener('keydown', (event) => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key]
    if (act === undefined) return
    event.preventDefault()
    act()
  })

  let dragged: { from: DOMPoint | { x: number; y: number }; moved: boolean } | null = null
  stage.addEventListener('pointerdown', (event) => {
    // A drag does not start on text, so that the reader can select the text.
    if (event.button !== 0 || (event.target as Element).closest('text') !== null) return
    dragged = { from: pointOf(event), moved: false }
  })
  stage.addEventListener('pointermove', (event) => {
    if (dragged === null) return
    const point = pointOf(event)
    const [x, y] = [point.x - dragged.from.x, point.y - dragged.from.y]
    if (!dragged.moved && Math.hypot(x, y) < 4) return
    if (!dragged.moved) stage.setPointerCapture(event.pointerId)
    dragged.moved = true
    stage.classList.add('dragging')
    dragged.from = point
    pan(x, y)
  })
  const drop = () => {
    dragged = null
    stage.classList.remove('dragging')
  }
  stage.addEventListener('pointerup', (event) => {
    const isClick = dragged?.moved === false
    drop()
    if (!isClick) return
    const name = (event.target as Element).closest<SVGGElement>('.node')?.dataset.name
    setFocus(name === undefined || (focus?.size === 1 && focus.has(name)) ? null : new Set([name]))
  })
  stage.addEventListener('pointercancel', drop)
}

/** Moves the content of a drawing into a single `g` element, to which the transform is applied. */
function frameOf(svg: SVGSVGElement): SVGGElement {
  const frame = document.createElementNS('http://www.w3.org/2000/svg', 'g')
  frame.append(...svg.childNodes)
  svg.append(frame)
  return frame
}
