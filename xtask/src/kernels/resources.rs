//! What each kernel takes, out of the assembler's log.

/// Prints a line for each kernel of one compilation.
pub(super) fn print(log: &str) {
    let mut rows = Vec::new();
    for line in log.lines() {
        if let Some(entry) = line.split_once("Compiling entry function '").map(|(_, rest)| rest) {
            let mut quoted = entry.split('\'');
            rows.push(Row { kernel: quoted.next().unwrap_or_default(), arch: quoted.nth(1).unwrap_or_default(), ..Row::default() });
        }
        let Some(row) = rows.last_mut() else { continue };
        if line.contains("bytes stack frame") {
            row.stack = before(line, "bytes stack frame");
            row.stores = before(line, "bytes spill stores");
            row.loads = before(line, "bytes spill loads");
        } else if line.contains("registers") {
            row.registers = before(line, "registers");
            row.shared = before(line, "bytes smem");
        }
    }
    println!(
        "{:<40} {:>7} {:>9} {:>8} {:>6} {:>12} {:>11}",
        "kernel", "arch", "registers", "shared B", "stack", "spill stores", "spill loads"
    );
    for row in rows {
        println!(
            "{:<40} {:>7} {:>9} {:>8} {:>6} {:>12} {:>11}",
            row.kernel, row.arch, row.registers, row.shared, row.stack, row.stores, row.loads
        );
    }
}

#[derive(Default)]
struct Row<'a> {
    kernel: &'a str,
    arch: &'a str,
    registers: u32,
    shared: u32,
    stack: u32,
    stores: u32,
    loads: u32,
}

/// The number before `unit`; 0 when there is none.
fn before(line: &str, unit: &str) -> u32 {
    let number = line.split_once(unit).and_then(|(left, _)| left.split_whitespace().last());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::before;

    #[test]
    fn numbers_before_units() {
        let line = "ptxas info    : Used 32 registers, used 1 barriers, 1024 bytes smem, 368 bytes cmem[0]";
        assert_eq!((before(line, "registers"), before(line, "bytes smem"), before(line, "bytes lmem")), (32, 1024, 0));
    }
}
