// QR codes (ISO/IEC 18004): bytes, error correction level M, versions 1 to 40.

import { svg } from "./dom.js";

// Bytes of error correction in each block, and the number of blocks, by version.
const CORRECTION = [
  10,
  16,
  26,
  18,
  24,
  16,
  18,
  22,
  22,
  26,
  30,
  22,
  22,
  24,
  24,
  28,
  28,
  26,
  26,
  26,
  26,
  ...Array(19).fill(28),
];
const BLOCKS = [
  1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16, 17, 17, 18, 20, 21, 23, 25, 26, 28, 29, 31, 33, 35,
  37, 38, 40, 43, 45, 47, 49,
];
const QUIET = 4;
const MASKS = [
  (x, y) => (x + y) % 2,
  (_x, y) => y % 2,
  (x) => x % 3,
  (x, y) => (x + y) % 3,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2,
  (x, y) => ((x * y) % 2) + ((x * y) % 3),
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2,
];

// Powers and logarithms in the field of 256 elements, with the polynomial 0x11d.
const EXP = new Uint8Array(510);
const LOG = new Uint8Array(256);
for (let power = 0, value = 1; power < 255; power += 1, value = (value << 1) ^ (value & 0x80 ? 0x11d : 0)) {
  EXP[power] = EXP[power + 255] = value;
  LOG[value] = power;
}
const times = (a, b) => (a && b ? EXP[LOG[a] + LOG[b]] : 0);

// Reed-Solomon: what remains of the data after the division by the generator.
function correctionOf(data, length) {
  let generator = [1];
  for (let root = 0; root < length; root += 1) {
    const longer = [...generator, 0];
    generator.forEach((factor, index) => {
      longer[index + 1] ^= times(factor, EXP[root]);
    });
    generator = longer;
  }
  const rest = new Uint8Array(length);
  for (const byte of data) {
    const factor = byte ^ rest[0];
    rest.copyWithin(0, 1);
    rest[length - 1] = 0;
    for (let index = 0; index < length; index += 1) rest[index] ^= times(generator[index + 1], factor);
  }
  return rest;
}

function alignments(version) {
  if (version === 1) return [];
  const number = Math.floor(version / 7) + 2;
  const step = version === 32 ? 26 : Math.ceil((version * 4 + 4) / (number * 2 - 2)) * 2;
  return [6, ...Array.from({ length: number - 1 }, (_, index) => version * 4 + 10 - step * (number - 2 - index))];
}

// Returns the number of bytes that a symbol holds, with those of the correction.
function capacity(version) {
  let bits = (16 * version + 128) * version + 64;
  if (version >= 2) {
    const number = Math.floor(version / 7) + 2;
    bits -= (25 * number - 10) * number - 55;
  }
  return Math.floor((version >= 7 ? bits - 36 : bits) / 8);
}

const dataCapacity = (version) => capacity(version) - CORRECTION[version - 1] * BLOCKS[version - 1];

// Mode, length, data, terminator and padding.
function dataBytes(bytes, version) {
  const bits = [];
  const put = (value, length) => {
    for (let bit = length - 1; bit >= 0; bit -= 1) bits.push((value >> bit) & 1);
  };
  put(4, 4);
  put(bytes.length, version < 10 ? 8 : 16);
  for (const byte of bytes) put(byte, 8);
  const length = dataCapacity(version);
  put(0, Math.min(4, length * 8 - bits.length));
  while (bits.length % 8 > 0) bits.push(0);
  const made = Array.from({ length: bits.length / 8 }, (_, index) =>
    bits.slice(index * 8, index * 8 + 8).reduce((sum, bit) => sum * 2 + bit, 0),
  );
  for (let pad = 0xec; made.length < length; pad ^= 0xec ^ 0x11) made.push(pad);
  return made;
}

// Blocks with their correction, a byte of each in turn. The first blocks may be one byte shorter.
function interleaved(data, version) {
  const [number, length] = [BLOCKS[version - 1], CORRECTION[version - 1]];
  const short = Math.floor(data.length / number);
  const longer = data.length % number;
  const blocks = [];
  for (let index = 0, begin = 0; index < number; index += 1) {
    const end = begin + short + (index >= number - longer ? 1 : 0);
    const block = data.slice(begin, end);
    blocks.push({ block, correction: correctionOf(block, length) });
    begin = end;
  }
  const made = [];
  for (let index = 0; index <= short; index += 1)
    for (const { block } of blocks) if (index < block.length) made.push(block[index]);
  for (let index = 0; index < length; index += 1) for (const { correction } of blocks) made.push(correction[index]);
  return made;
}

// A number with its check bits (BCH).
function checked(value, polynomial, bits) {
  let rest = value << bits;
  for (let bit = 31 - Math.clz32(rest); rest >= 1 << bits; bit = 31 - Math.clz32(rest))
    rest ^= polynomial << (bit - bits);
  return (value << bits) | rest;
}

// Patterns that do not depend on the data. `isFixed` tells where data cannot be.
function frame(version) {
  const size = version * 4 + 17;
  const dark = Array.from({ length: size }, () => new Uint8Array(size));
  const isFixed = Array.from({ length: size }, () => new Uint8Array(size));
  const set = (x, y, value) => {
    if (x < 0 || y < 0 || x >= size || y >= size) return;
    dark[y][x] = value;
    isFixed[y][x] = 1;
  };
  for (let index = 0; index < size; index += 1) {
    set(6, index, 1 - (index % 2));
    set(index, 6, 1 - (index % 2));
  }
  for (const [cx, cy] of [
    [3, 3],
    [size - 4, 3],
    [3, size - 4],
  ]) {
    for (let y = -4; y <= 4; y += 1)
      for (let x = -4; x <= 4; x += 1)
        set(cx + x, cy + y, Number(![2, 4].includes(Math.max(Math.abs(x), Math.abs(y)))));
  }
  const centres = alignments(version);
  for (const cy of centres) {
    for (const cx of centres) {
      if ((cx === 6 && cy === 6) || (cx === 6 && cy === size - 7) || (cx === size - 7 && cy === 6)) continue;
      for (let y = -2; y <= 2; y += 1)
        for (let x = -2; x <= 2; x += 1) set(cx + x, cy + y, Number(Math.max(Math.abs(x), Math.abs(y)) !== 1));
    }
  }
  if (version >= 7) {
    const bits = checked(version, 0x1f25, 12);
    for (let bit = 0; bit < 18; bit += 1) {
      const [a, b] = [size - 11 + (bit % 3), Math.floor(bit / 3)];
      set(a, b, (bits >> bit) & 1);
      set(b, a, (bits >> bit) & 1);
    }
  }
  putFormat(set, size, 0);
  return { size, dark, isFixed, set };
}

// Level M has the bits 00, so the format is the number of the mask.
function putFormat(set, size, mask) {
  const bits = checked(mask, 0x537, 10) ^ 0x5412;
  for (let bit = 0; bit < 15; bit += 1) {
    const value = (bits >> bit) & 1;
    if (bit < 6) set(8, bit, value);
    else if (bit < 8) set(8, bit + 1, value);
    else if (bit === 8) set(7, 8, value);
    else set(14 - bit, 8, value);
    if (bit < 8) set(size - 1 - bit, 8, value);
    else set(8, size - 15 + bit, value);
  }
  set(8, size - 8, 1);
}

// Bits go up and down in columns of two, from the right.
function putData({ size, dark, isFixed }, bytes) {
  let bit = 0;
  for (let right = size - 1; right > 0; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < size; step += 1) {
      const y = ((right + 1) & 2) === 0 ? size - 1 - step : step;
      for (const x of [right, right - 1]) {
        if (isFixed[y][x]) continue;
        dark[y][x] = bit < bytes.length * 8 ? (bytes[bit >> 3] >> (7 - (bit & 7))) & 1 : 0;
        bit += 1;
      }
    }
  }
}

// Long runs, blocks, patterns like the corners, and a bad share of dark modules make a code hard to read.
function penalty(dark) {
  const size = dark.length;
  let sum = 0;
  let total = 0;
  for (const isAcross of [true, false]) {
    for (let a = 0; a < size; a += 1) {
      let line = "";
      for (let b = 0; b < size; b += 1) line += isAcross ? dark[a][b] : dark[b][a];
      for (const [run] of line.matchAll(/0{5,}|1{5,}/g)) sum += run.length - 2;
      for (const pattern of ["10111010000", "00001011101"])
        for (let at = line.indexOf(pattern); at >= 0; at = line.indexOf(pattern, at + 1)) sum += 40;
    }
  }
  for (let y = 0; y < size; y += 1) {
    for (let x = 0; x < size; x += 1) {
      total += dark[y][x];
      if (
        x > 0 &&
        y > 0 &&
        dark[y][x] === dark[y][x - 1] &&
        dark[y][x] === dark[y - 1][x] &&
        dark[y][x] === dark[y - 1][x - 1]
      )
        sum += 3;
    }
  }
  return sum + Math.floor(Math.abs(total * 20 - size * size * 10) / (size * size)) * 10;
}

/**
 * Returns the modules of a code as rows of 0 and 1, or null if the text is too long (2331 bytes). `mask` is chosen by
 * default.
 */
export function modules(text, mask) {
  const bytes = new TextEncoder().encode(text);
  let version = 1;
  while (version <= 40 && bytes.length > dataCapacity(version) - (version < 10 ? 2 : 3)) version += 1;
  if (version > 40) return null;
  const made = frame(version);
  putData(made, interleaved(dataBytes(bytes, version), version));
  const attempts = (mask === undefined ? MASKS.map((_, index) => index) : [mask]).map((number) => {
    const dark = made.dark.map((row, y) =>
      row.map((value, x) => (made.isFixed[y][x] ? value : value ^ Number(MASKS[number](x, y) === 0))),
    );
    putFormat(
      (x, y, value) => {
        dark[y][x] = value;
      },
      made.size,
      number,
    );
    return dark;
  });
  return attempts.map((dark) => ({ dark, cost: penalty(dark) })).sort((a, b) => a.cost - b.cost)[0].dark;
}

/** Draws the code of a text, dark on light in every scheme. Returns null if the text is too long. */
export function drawing(text, label) {
  const dark = modules(text);
  if (!dark) return null;
  const size = dark.length + 2 * QUIET;
  const path = dark
    .map((row, y) =>
      [...row.join("").matchAll(/1+/g)]
        .map((run) => `M${run.index + QUIET} ${y + QUIET}h${run[0].length}v1h-${run[0].length}z`)
        .join(""),
    )
    .join("");
  return svg(
    "svg",
    { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": label, "shape-rendering": "crispEdges" },
    svg("rect", { width: size, height: size, fill: "#fff" }),
    svg("path", { d: path, fill: "#000" }),
  );
}
