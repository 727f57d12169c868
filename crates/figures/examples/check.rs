//! Prints the model beside every published number.
fn main() {
    let platform = dray_platform::builtin("spr-2s").expect("built in");
    let tables = dray_figures::reference_tables().unwrap_or_else(|e| panic!("{e}"));
    let start = std::time::Instant::now();
    let checked = dray_figures::check(&platform, &tables).unwrap_or_else(|e| panic!("{e}"));
    let took = start.elapsed();
    for t in &checked {
        println!(
            "== {} [{}] target {:?} median {:.1} worst {:.1} missed {}",
            t.id,
            t.unit,
            t.target,
            t.median(),
            t.worst(),
            t.missed().len()
        );
        for p in &t.points {
            let flag = if p.checked && t.target.is_some_and(|x| p.error.abs() > x) {
                " <<<"
            } else if !p.checked {
                " (not checked)"
            } else {
                ""
            };
            println!(
                "   {:40} model {:10.3} published {:10.3} error {:7.2}{flag}",
                p.label, p.model, p.published, p.error
            );
        }
    }
    println!("{took:?}");
}
